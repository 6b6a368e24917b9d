// Package recon compares the books with what providers report, and lets people resolve
// cases.
//
// # Cases
//
// What can't be decided silently is a case: see package cases, and package orders, which
// opens them. A person of finance proposes what's to be done, and another approves or
// rejects it. Proposing and rejecting move the case and nothing else, in an entry of its
// journal. What is approved about an order is carried out by package orders, in one entry
// with the case; a case about a payment that isn't ours can only be linked, once no money
// rests for it. Nothing of this is kept here: the rows are those of package cases.
//
// # Reports
//
// A provider's settlement report lists what changed its balance, line by line. Each
// line is compared with the operation that moved the money: the one that it names by
// our id, or, for what the provider did by itself, one of its own on the same payment.
// Operations that moved money in the report's time and have no line are differences
// too; those that are younger than every line are only late. What differs is told by the
// answer to the import, and of a line by its row; it opens no case.
//
// The report's time begins after the last line of the reports before it, and ends with
// its own last line, or before the first line of a report after it. So reports may come
// in any order, overlap, or come again, and nothing between two of them is forgotten.
//
// # What is booked
//
// The money of a line was posted when its operation's outcome came. What only a report
// tells is the fee: it's posted once, with the line's row, on the journal of the lane in
// which the payment's order is; for a payment that isn't ours, on the system journal. A
// line stays there also when its operation becomes known later. Rows are changed by
// report.booked entries alone, and only in what the line was found to be.
package recon
