// Package quota moves tickets between the buckets from which they're sold: one for each
// lane of an event, tier and allotment.
//
// # Moves
//
// A move inside one lane is one entry. A move between lanes is two, linked by the move's
// id: the lane that the tickets leave puts them on its transit account, for good
// (quota.sent); the lane that they come to takes them from its own (quota.received). A
// lane's transit is what it sent less what it got, so that over all lanes the account has
// what is under way. The first entry decides the move; from then on it can only be
// finished, by whoever comes by: the second reads the first, and its id is made of the
// move's. Nothing is in two places, and nothing is lost between them.
//
// What many people want is moved for them (pull), a little ahead of them (rebalance), and
// what an operator asks for is moved as asked; all are the same entries, with their cause
// and reason, and the history lists them alike. A move of many tickets that an operator
// asks for waits for a second person's approval, and is undone by another move.
//
// # Failure
//
// A process that dies between the two entries leaves tickets under way. Resume finds them
// from any process and finishes; until then they count as tickets that may come, and
// nobody is told that the event is sold out for lack of them.
package quota
