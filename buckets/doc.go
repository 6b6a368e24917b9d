// Package buckets keeps what is for sale: events, their tiers and prices, and the
// available side of the tickets.
//
// A tier's tickets rest on inventory accounts of the event's journal, in the unit
// of the tier: capacity (contra), available, held, sold, blocked, transit, void.
// They sum to zero; nothing here counts them a second time.
//
// An event is made in two steps, so that no transaction touches two journals. The
// system journal records event.created and thereby the name; the seq of that entry
// is the number of the event's journal. The event's journal then records
// event.opened with the tiers and their capacity. An event that was created and not
// opened, because the process died in between, doesn't exist for anyone yet; a
// repeat of the request opens it, and so does OpenCreated, which runs with the
// sweeper.
package buckets
