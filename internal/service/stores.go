package service

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/quota"
	"github.com/tierledger/tierledger/recon"
	"github.com/tierledger/tierledger/seats"
	"github.com/tierledger/tierledger/subscribers"
	"github.com/tierledger/tierledger/tickets"
)

// Stores are the ledger and what stands on it, fitted together.
type Stores struct {
	Ledger *ledger.Ledger
	Reader *ledger.Reader
	Events *buckets.Store
	Quotas *quota.Store
	Seats  *seats.Store
	Maps   *seats.Maps
	Holds  *holds.Store
	Cases  *cases.Store
	Orders *orders.Store
	Recon  *recon.Store

	Tickets     *tickets.Store
	Subscribers *subscribers.Store
	Letters     *outbox.Letters
}

// Parts are what the stores are put on.
type Parts struct {
	Commits, Reads *pgxpool.Pool
	Effects        *pgxpool.Pool      // of what happens behind the commits; nil: Commits
	Observe        func(ledger.Batch) // may be nil
	Providers      []payments.Provider
	// Operations is told of the new state of every operation; may be nil.
	Operations func(payments.Kind, orders.OperationStatus)
	// Prefers tells which lanes of an event this process looks after first; nil: all.
	Prefers func(lane int) bool
	// Moves is told of every quota move that this process made; may be nil.
	Moves func(quota.Move)
	// Secrets sign tickets, and seal what must not be read; none: nothing of that is made.
	Secrets keyring.Ring
	// WebhooksAllowPrivate lets webhooks go to any address; see Config.
	WebhooksAllowPrivate bool
	// Sent is told of every webhook's outcome; may be nil.
	Sent func(subscribers.Sent)
	Log  *slog.Logger // nil: nowhere
}

// Fit puts the stores together. Close the orders and the quotas before the ledger, and that
// before the pools.
func Fit(p Parts) Stores {
	charts := seats.NewCharts()
	l := ledger.New(ledger.Options{
		Pool: p.Commits, Observe: p.Observe,
		Shelves: []func() ledger.Shelf{
			buckets.NewShelf, charts.Shelf, quota.NewShelf, holds.Shelves(), cases.NewShelf, orders.NewShelf, recon.NewShelf,
		},
	})
	reader := ledger.NewReader(p.Reads)
	events := buckets.NewStore(l, reader, p.Reads)
	quotas := quota.NewStore(quota.Options{
		Ledger: l, Reader: reader, Events: events, Reads: p.Reads, Prefers: p.Prefers, Observe: p.Moves, Log: p.Log,
	})
	s := Stores{
		Ledger: l, Reader: reader, Events: events, Quotas: quotas,
		Seats: seats.NewStore(l, events, p.Reads, charts), Maps: seats.NewMaps(events, p.Reads, charts),
		Holds: holds.NewStore(l, events, quotas, p.Reads), Cases: cases.NewStore(events, p.Reads),
	}
	s.Orders = orders.NewStore(orders.Options{
		Ledger: l, Reader: reader, Events: events, Holds: s.Holds, Cases: s.Cases, Reads: p.Reads,
		Providers: p.Providers, Observe: p.Operations, Log: p.Log,
	})
	s.Recon = recon.NewStore(l, s.Orders, s.Cases, p.Reads)
	if p.Effects == nil {
		p.Effects = p.Commits
	}
	s.Tickets = tickets.NewStore(tickets.Options{Ring: p.Secrets, Events: events, Reads: p.Reads})
	s.Subscribers = subscribers.NewStore(subscribers.Options{
		Pool: p.Effects, Reads: p.Reads, Reader: reader, Events: events, Ring: p.Secrets,
		AllowPrivate: p.WebhooksAllowPrivate, Observe: p.Sent, Log: p.Log,
	})
	s.Letters = outbox.NewLetters(p.Effects, p.Reads, redo(s), p.Log)
	return s
}
