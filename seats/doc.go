// Package seats keeps the assigned seats of events: the chart, the state of every seat,
// and the map that shoppers see.
//
// A seat has a row of its own with the state available, held, sold or blocked, the hold
// that has it, and the seq of the last entry that changed it. Every change is part of an
// entry of the event's journal: its postings count the tickets of the seat's tier, its
// lines in seat_changes name the seats. Decisions give Changed rows, which are checked before
// anything is applied; the database accepts a change only from the state that it leads away from, so
// a seat can't be taken twice even by a process that is wrong.
//
// seat_rows summarises each row of seats as text, a letter a seat. It's computed from the
// seats in the commit that changes them, and read where many seats matter at once: for the
// best available and for the map.
//
// The chart itself never changes once it's loaded, so a process remembers it. Nothing else
// is remembered between batches. The map is advisory: it's read from what was committed,
// follows it within a fraction of a second, and says as of when.
package seats
