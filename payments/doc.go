// Package payments is the border to payment providers: what a provider can be
// asked, what its answers mean, and how its webhooks are verified.
//
// # Outcomes
//
// Every step with a provider is an operation of ours. Its id is the idempotency key
// of every call made for it, and the reference by which it's looked up. A call ends in
// one of six outcomes, and the difference between two of them is the point of this
// package:
//
//   - [NotAttempted]: this call has certainly not reached the provider, or was turned
//     away at its door.
//   - [Unknown]: it may have. A timeout, a connection that broke, a 5xx and an answer
//     that isn't the provider's all mean that.
//
// Unknown is never a failure. It becomes known by evidence: a repeat of the call with
// the same id, a lookup, a webhook, a line of the provider's report. All of them say it
// as a [Result], so that one piece of code can act on it, whichever comes first.
//
// A call isn't repeated in here. When to repeat it is the caller's decision, from
// committed state; until the key's lifetime has passed a repeat is safe, after it only
// a lookup is.
package payments
