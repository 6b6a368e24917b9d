// Package sim is a payment provider that only pretends: it keeps payments, takes no
// money, and misbehaves on request as real ones do. It shares nothing with the ledger
// but the wire: a server of its own, with its own books, clock and faults.
//
// # Protocol
//
//	POST /payments                       authorize; manual or automatic capture
//	POST /payments/{id}/capture          once; a part, and the rest is released
//	POST /payments/{id}/void             an authorized payment
//	POST /payments/{id}/cancel           one that the buyer hasn't made yet
//	POST /payments/{id}/refunds
//	GET  /payments?reference=R           by the caller's id of the authorization
//	GET  /payments/{id}
//	GET  /operations/{reference}         by the caller's id of any operation
//	GET  /report?from=&to=               the settlement report, CSV
//
// A change needs an Idempotency-Key and a reference; both are the caller's operation
// id. What was decided is answered with the operation, 201 or 402, and remembered under
// the key for 24 hours of the provider's clock: a repeat gets the same answer, a repeat
// with other content 422. Later than that, a repeat is a new call. What is refused (4xx
// with a code) changes nothing and isn't remembered.
//
// The buyer, the bank and the tester have calls of their own, without keys:
//
//	POST /payments/{id}/complete|fail    the bank's word, also a late one
//	POST /payments/{id}/dispute          a chargeback
//	GET  /payments/{id}/bank             the same as a page, where next_action leads
//	GET  /control, POST /control         see [Settings]
//
// # States of a payment
//
//	requires_action, processing -> authorized | captured | failed | canceled
//	authorized -> captured | voided | failed
//	captured -> partially_refunded -> refunded
//	captured -> failed                   the bank took the capture back
//	canceled -> authorized | captured    a late payment
//
// # Payment methods
//
// The method picks how a payment goes. All but the first behave like it elsewhere.
//
//	sim_ok               everything works
//	sim_decline          the authorization is declined
//	sim_requires_action  the buyer must act: complete or fail
//	sim_processing       the bank takes its time: complete or fail
//	sim_transfer         the buyer sends the money, at any later time; automatic capture
//	                     only, can't be cancelled; complete takes an amount
//	sim_timeout_applied  the authorization is done, its first answer comes too late
//	sim_timeout_lost     the authorization is never done, the answer comes too late
//	sim_slow             the answer to the authorization is slow
//	sim_error            the authorization fails with 502, and isn't done
//	sim_capture_fails    the capture is declined for good
//	sim_capture_timeout  the capture is done, its first answer comes too late
//	sim_refund_pending   refunds are pending: complete or fail
//	sim_webhook_late     every webhook is late
//	sim_webhook_twice    every webhook is sent twice
//
// [Rates] add the same faults, and some more, to any call by chance. Chance is drawn
// from the seed, the key and the number of the attempt, so it doesn't depend on which
// call comes first.
//
// # Money
//
// A capture costs 2.9 % of it and 0.30 of the currency's major unit, rounded half up to
// the minor unit. The fee stays when money is refunded, and goes back when the bank
// takes the capture back. A chargeback costs 15.00 USD, whatever its currency.
package sim
