// Package tickets issues the tickets of orders that are paid: one for each unit that was
// sold, signed, so that a gate can verify it without asking anybody.
//
// # When
//
// Tickets follow the journal, as the consumer "tickets" of package outbox. The order as an
// entry records it decides, and nothing else:
//
//	captured, partially_refunded, refunded   as many valid tickets as the order owns units, line by line
//	confirmed                                what there is: none before the first capture, since a capture
//	                                         may fail; all of them after one that was taken back
//	cancelled                                none
//	pending                                  none
//
// What an order owns are the units of its lines that weren't returned. So a refund that
// returns units takes their tickets back in the entry that asks for it: the units are on
// sale again from then on. If it fails, or is reversed, the money comes back to the order
// and the units don't, nor do their tickets. A refund of money alone, a chargeback and its
// reversal leave all tickets as they are. Of a line with seats the tickets of the returned
// seats are revoked; of one without, those with the highest numbers.
//
// A revoked ticket stays so, and no unit gets a second one. A cancelled order that's bought
// after all, by a late payment that's honoured, is another sale of the same lines: it gets
// tickets with further numbers.
//
// # Once
//
// The runtime applies an entry's effect in one transaction with the position. What can come
// out of turn is a dead letter that's replayed: ticketed_orders has the last entry that an
// order's tickets follow, and an older one changes nothing. Since every entry records the
// whole order, one that was given up is made good by the next of that order. The row is also
// what two processes wait on that come to one order at once.
//
// # The signed form
//
// A token is a JWS in compact form (RFC 7515), signed with Ed25519 (EdDSA, RFC 8037), of type
// ticket+jwt. It's made of what never changes about the ticket, so that the same key signs
// the same ticket to the same token. Whether it's still valid isn't in it: that's what the
// list of an order's tickets says.
//
// Without a secret there's no key to sign with: the service doesn't run the consumer then.
// Whoever runs it nevertheless gets outbox.ErrAway, and nothing is lost: it begins where it
// stood when there's a secret.
package tickets
