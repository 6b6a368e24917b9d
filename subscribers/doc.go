// Package subscribers tells others of what happens, by webhook. A subscription says who is
// told of which entries, and the consumer webhooks makes of each entry one delivery for each
// subscription that it's for, in the transaction that moves the consumer's position. Workers
// then POST the deliveries.
//
// # What a subscriber can rely on
//
// Every entry that a subscription is for, and whose time is after the answer that it was
// made or enabled, is attempted by its schedule, unless it's disabled first: ten times over
// three days, until an answer of 2xx. All attempts of a delivery have one webhook-id, of its
// subscription, journal and seq: a delivery may come twice (a process that dies after the
// call and before it has recorded it leaves no other way), but never under two ids. Each
// attempt is signed as Standard Webhooks 1.0 says.
//
// Deliveries of one subscription are begun in the order of the journal, several at once, and
// one that failed is overtaken: whoever needs order has journal and seq.
//
// # What keeps one subscriber from harming others, and us
//
// Each subscription has its own queue, a window of calls at once that closes with failures
// and opens with success, and a breaker; while that's open nothing is attempted, and no
// attempt is lost. Calls at once are shared out: first to who has the fewest, and only a
// part of them to those that are slow. A call has a deadline, and little of its answer is
// read, for a second at most. Where a call may go is decided when it's dialled, by the
// address that the name has then.
//
// # After a crash
//
// A worker leases a delivery by moving its due time on; a lease that has run out is anyone's.
// What came of a call is recorded only by who still has the lease. The last failure ends the
// delivery, and writes its dead letter, in one transaction.
//
// # What is kept
//
// Deliveries that were taken or dropped are removed after a month, with their attempts; dead
// ones stay for their dead letters.
//
// Secrets are sealed by the keyring under the subscription's id, shown once when they're
// made, and in no entry, log or list.
package subscribers
