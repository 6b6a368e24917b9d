// Package orders keeps purchases: checkout, confirmation, capture, refunds, and every
// step with the payment provider that they take.
//
// # A purchase
//
// Checkout commits the order and its authorization, as sent, in one entry; then it calls
// the provider, outside of any transaction; then it commits what came of that. An
// authorization confirms the order in one entry: tickets, money and memo. The capture is
// sent in that same entry and called after it.
//
// # Evidence
//
// Whatever is learned of an operation is evidence: the answer to a call, what a lookup
// found, a webhook, a decision of two people. All of it goes through one pure function,
// [observe], so that it doesn't matter which comes first, or twice, or at all. Evidence
// older than what the status rests on, by the provider's clock, changes nothing, but that
// what's still open has succeeded.
// A call without an answer is no evidence: the operation is unknown, and stays so.
//
// What a provider does by itself, a refund on its own pages or a chargeback, becomes an
// operation as well, under an id made of the provider's name of it. A webhook that can't be
// taken in yet is parked; one about no payment of ours leaves its money in suspense, with
// a case.
//
// # Failure
//
// A process that dies leaves operations whose lease ends: the janitor of any process
// finds them by due_at, looks them up at the provider and, where nothing is known of them
// there, calls again under the same id, which is the provider's idempotency key. Nothing
// is ever called under a new id while an outcome is open. Webhooks only speed this up.
//
// A payment that comes when its hold has ended, or when the order is paid, rests in
// suspense, or as an authorization, with a case; see package cases.
package orders
