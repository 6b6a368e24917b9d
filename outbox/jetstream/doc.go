// Package jetstream is the bus of the outbox on NATS JetStream, embedded or by URL.
//
// All journals share one stream. A batch is published atomically (JetStream's batch
// publish), and its first message expects the journal's last one at a place in the
// stream: so a batch is there as a whole or not at all, once, whoever sends it, and a
// relay that has lost its lease is refused. That needs no message ids: JetStream would
// forget these after its duplicate window, and would keep those of messages that an
// administrator has purged.
//
// Consumers are pull consumers with explicit acknowledgement, shared by all processes.
// Wake-ups are scheduled messages in a stream of their own, kept in memory: they're only
// hints.
package jetstream
