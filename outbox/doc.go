// Package outbox is what happens behind the commits: it publishes the journals' entries, runs
// the consumers that take effect from them, and keeps what couldn't be done.
//
// The journal is the outbox. A Relay reads a journal's entries after those that the stream
// has, and appends them to a Bus in order: gapless numbers mean that none can be passed over,
// and the stream refuses whoever doesn't go on from its end. The stream is transport. What it
// loses is noticed and published again; when it's full or away, the journals wait.
//
// A Consumer's Inbox keeps a position in each journal, and moves it in the transaction of the
// effects: each effect is there once, whatever messages are lost, doubled, late or made up. A
// message is only a hint that a journal has more, and a sweep finds what no message told. An
// entry whose effect fails is tried again with growing pauses, and becomes a dead letter in the
// end, which people replay or discard with Letters. Something that a consumer depends on and
// that's away costs no attempt.
//
// Nothing here is a balance, and nothing that a buyer waits for: while commits wait, the relay
// gives way to them. All of it could be made anew from the journals.
package outbox
