// Package bench measures the ledger, beside two other ways to write the same
// holds and the least that the database needs for them.
//
// # What is compared
//
// All systems run in one call on one PostgreSQL, one after the other, with the
// same clients for the same time, each after a warm-up and a checkpoint:
//
//	product           the assembled service
//	row-lock          a transaction a request, SELECT … FOR UPDATE on the tier
//	single-statement  a transaction a request, all of it in one statement
//	floor             the rows alone: multi-row inserts, no HTTP, no decision
//
// All of them write an entry with digest and hash, two postings, the customer's
// account and the hold. The last three write to clones of the ledger's tables, in
// a schema of their own, so with the same keys, indexes and checks.
//
// A [Sale] goes on to the money, for the product alone: hold, payment with a simulated
// provider, capture; with a share of faults if wanted. At its end every order is held
// against the provider's own report.
//
// [Seats] does the same for assigned seats: the product, with shoppers beside it who read
// the map and follow its changes, and on clones
//
//	seat-lock         a transaction a request, SELECT … FOR UPDATE on the seats in order,
//	                  SKIP LOCKED for the best available
//
// [Lanes] compares one event over several processes with the same split over lanes, each
// way by turns of a second; and sells out an event of many lanes to parties.
//
// # Who runs where
//
// This process makes the load. The system under load is a child, a server on
// loopback whose memory and garbage are its own. It says where it serves, and
// ends when its standard input does, so it can't outlive us.
//
// # Truth
//
// Every answer is read whole; whatever is neither a hold nor a known refusal
// counts as an error, and so do seats that nobody asked for. No seat may be two holds' at
// a time, in the database or in the clients' own book of their answers, ordered by the
// versions that they tell. At the end every invariant of the ledger is recomputed.
// What was lost on the way fails the run, however fast it was.
package bench
