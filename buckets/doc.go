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
//
// # Lanes and allotments
//
// An event may be split over lanes, journals of their own whose first is the event's, its
// home. What is for sale is in the home's rows alone, and the batches of every lane read it
// there; a lane's own row, changed by its own entries, says by which layout it goes. At one
// time a customer has tickets in one lane only (Admit), so that limits are that lane's
// business. Every lane has a bucket of each tier, and of each allotment: tickets set aside
// for a channel, perhaps for those who have an access code. Package quota moves tickets
// between the buckets.
package buckets
