// Package ledger keeps journals of balanced entries, and the accounts that the
// entries add up to. It's the one place where a balance changes.
//
// # The commit path
//
// A change is a Command against one journal. Commands that wait for a journal
// are taken together and committed in one transaction, in five steps (see
// committer.commit): lock the journal's row, read the rows that the commands
// need, decide one command after the other in memory, write everything set-based,
// commit. The transaction takes two round trips however many commands it carries,
// so a contended tier is a queue that drains in large bites, not a hot lock.
//
// Other packages ride along: a Shelf reads and writes their rows in the same
// round trips and the same transaction.
//
// # What holds
//
//   - Postings of an entry sum to zero per unit.
//   - An account's balance is the sum of its postings; a control account's is the
//     sum of the accounts below it.
//   - seq is gapless and in commit order; an entry's hash covers the one before.
//   - A command id has at most one entry: a repeat gets the first answer.
//   - What is refused leaves nothing behind.
//   - Time in a journal never goes back, and is the database's.
//
// # When things fail
//
// Before the write nothing has happened: the callers are told that the database
// is unavailable. A connection that dies between the write and the answer of
// COMMIT leaves the outcome unknown: the committer runs the same batch again, and
// the ids tell what had committed. If the database stays away, the callers are
// told that the outcome is unknown; a repeat under the same key finds out. A
// batch that the database refuses is committed command by command, so that one
// bad command fails alone.
package ledger
