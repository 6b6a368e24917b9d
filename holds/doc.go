// Package holds keeps customers' time-bounded claims on tickets.
//
// A hold moves tickets from available to held:<customer>; its release or expiry
// moves them back. The row of a hold says until when, and for how much.
//
// # States
//
//	held            -> payment_pending   a payment for it has begun
//	held            -> released          by its customer, or for one
//	held            -> expired           by the database's clock, from expires_at on
//	payment_pending -> held              the payment wasn't made, and expires_at is to come
//	payment_pending -> reconciling       pay_until has passed, and the outcome is unknown
//	payment_pending, reconciling -> released, expired
//	                                     only on evidence: it isn't paid, or by a payment
//	                                     that can't buy these tickets
//	held, payment_pending, reconciling -> confirmed
//	                                     bought: its tickets are sold
//
// Confirmed, released and expired are final. What is paid for belongs to package
// orders, which changes holds through this package's methods in its own entries; the
// entry's data has the hold as it then is.
//
// # Expiry
//
// Every batch of a journal reads the holds that are due there and expires them
// before it judges anything, so that tickets can be taken by the next buyer from
// expires_at on, whoever asks and whether or not a sweeper runs. The sweeper only
// wakes journals that nobody asks. An expiry matches the hold's id, its state and
// its deadline together, and its entry has an id made of the hold's: twice is once.
package holds
