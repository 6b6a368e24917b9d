package quota

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Kinds of this package's entries.
const (
	KindRequested = "quota.requested" // awaits approval
	KindRejected  = "quota.rejected"
	KindMoved     = "quota.moved"    // inside a lane
	KindSent      = "quota.sent"     // to another lane
	KindReceived  = "quota.received" // there
)

// Status is the state of a move.
type Status string

// The states of a move. Moved is decided: between lanes the tickets may still be under way.
const (
	Awaiting Status = "awaiting_approval"
	Rejected Status = "rejected"
	Moved    Status = "moved"
)

// Cause is why something was moved.
type Cause string

// The causes.
const (
	ByOperator Cause = "operator"
	Pull       Cause = "pull"      // a buyer asked for more than the lane had
	Rebalance  Cause = "rebalance" // a lane would have run dry
	Split      Cause = "split"     // the lane is new
	Merge      Cause = "merge"     // the lane isn't in use any more
	Collect    Cause = "collect"   // an operator takes tickets of all lanes through the first
	Release    Cause = "release"   // the allotment was closed, or its time has come
)

// Bucket is a place of free tickets, as callers name it.
type Bucket struct {
	Lane      int    `json:"lane,omitempty"`      // from 1; 0: any
	Allotment string `json:"allotment,omitempty"` // "": everybody's
}

// Move is a move's row, and as callers see it.
type Move struct {
	ID        uuid.UUID     `json:"move_id"`
	Event     string        `json:"event"`
	Tier      ledger.Unit   `json:"tier"`
	From      Bucket        `json:"from"`
	AnyLane   bool          `json:"any_lane,omitempty"` // other lanes may have given to that one before
	To        Bucket        `json:"to"`
	Quantity  ledger.Amount `json:"quantity"` // moved; of one that isn't, asked for
	UpTo      bool          `json:"up_to,omitempty"`
	Status    Status        `json:"status"`
	Cause     Cause         `json:"cause"`
	Reason    string        `json:"reason,omitempty"`
	AskedBy   string        `json:"asked_by"`
	DecidedBy string        `json:"decided_by,omitempty"`
	AskedAt   time.Time     `json:"asked_at"`
	MovedAt   *time.Time    `json:"moved_at,omitempty"`
	Version   ledger.Seq    `json:"version"`

	account, toAccount string
	toJournal          ledger.JournalID
}

// local tells whether the move stays in the journal.
func (m *Move) local(journal ledger.JournalID) bool { return m.toJournal == journal }

// send is the command of a move, in the journal of the lane that tickets leave.
type send struct {
	id        uuid.UUID
	principal string
	unit      ledger.Unit
	account   string // that they leave
	to        string // account that they come to
	toLane    int    // 0: the same
	anyLane   bool   // the first lane gives for all
	quantity  ledger.Amount
	upTo      bool
	cause     Cause
	reason    string
	ifMatch   *ledger.Seq   // version of the account
	elsewhere ledger.Amount // free tickets in other lanes: what awaits approval may count on them
	preview   bool          // and a dry run, which moves nothing
}

func (c *send) Accounts() []string { return []string{c.account, c.to, ledger.TransitTo(c.to)} }

// Decide judges what is asked for in the order of the codes.
func (c *send) Decide(s *ledger.State) (ledger.Decision, error) {
	m, err := c.plan(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	account := s.Account(c.account, c.unit)
	if c.ifMatch != nil && *c.ifMatch != account.Version {
		return ledger.Decision{}, buckets.ErrVersionConflict.Because("the bucket has version %d", account.Version).
			With("version", account.Version)
	}
	m.Quantity = c.quantity
	if err := fit(&m, account.Balance+c.elsewhere); err != nil {
		return ledger.Decision{}, err
	}
	if c.cause == ByOperator && m.Quantity >= buckets.ShelfOf(s).Event.ApproveMovesFrom {
		m.Status, m.Quantity = Awaiting, c.quantity
		return decision(KindRequested, m, nil), nil
	}
	if !c.preview {
		m.Quantity = c.quantity
		if err := fit(&m, account.Balance); err != nil {
			return ledger.Decision{}, err
		}
	}
	return m.execute(s), nil
}

// plan makes the move, or tells why there can't be one.
func (c *send) plan(s *ledger.State) (Move, error) {
	shelf := buckets.ShelfOf(s)
	if shelf.Event == nil {
		return Move{}, buckets.ErrEventNotFound.Because("the event isn't open yet")
	}
	layout, own := buckets.Whole(s.Journal), 1
	if shelf.Lane != nil {
		layout, own = shelf.Lane.Layout, shelf.Lane.Lane
	}
	toLane := c.toLane
	if toLane == 0 {
		toLane = own
	}
	tier := shelf.Tiers[c.unit]
	from, _ := ledger.Free(c.account)
	to, _ := ledger.Free(c.to)
	switch {
	case c.unit == ledger.Uses:
	case tier == nil:
		return Move{}, buckets.TierNotFound(c.unit)
	case tier.Seated:
		return Move{}, fault.BadField("tier", "%s is sold by seat: its seats are set aside by name", c.unit)
	}
	if toLane > len(layout.Journals) || c.cause == ByOperator && toLane > layout.Lanes() {
		return Move{}, buckets.LaneNotFound(toLane)
	}
	for _, allotment := range []string{from, to} {
		if allotment == "" || c.cause != ByOperator {
			continue
		}
		if _, err := shelf.Live(s, allotment); err != nil {
			return Move{}, err
		}
	}
	if toLane == own && c.account == c.to {
		return Move{}, fault.BadField("to", "is the bucket that the tickets are in")
	}
	return Move{
		ID: c.id, Event: shelf.Event.Event, Tier: c.unit,
		From: Bucket{own, from}, AnyLane: c.anyLane, To: Bucket{toLane, to},
		UpTo: c.upTo, Cause: c.cause, Reason: c.reason, AskedBy: c.principal, AskedAt: s.Now, Version: s.NextSeq(),
		account: c.account, toAccount: c.to, toJournal: layout.Journals[toLane-1],
	}, nil
}

// fit makes the quantity what is free, when fewer will do; else it refuses.
func fit(m *Move, free ledger.Amount) error {
	asked := m.Quantity
	if m.UpTo {
		m.Quantity = min(asked, free)
	}
	if m.Quantity > free || m.Quantity == 0 {
		return insufficient(m.Tier, free, asked)
	}
	return nil
}

func insufficient(tier ledger.Unit, free, asked ledger.Amount) error {
	return ledger.ErrInsufficientFree.Because("%d are free, %d asked", free, asked).
		With("tier", tier).With("free", free).With("asked", asked)
}

// execute decides that the tickets move now.
func (m Move) execute(s *ledger.State) ledger.Decision {
	m.Status, m.MovedAt, m.Version = Moved, new(s.Now), s.NextSeq()
	kind, to := KindSent, ledger.TransitTo(m.toAccount)
	if m.local(s.Journal) {
		kind, to = KindMoved, m.toAccount
	}
	return decision(kind, m, []ledger.Leg{
		{Account: m.account, Unit: m.Tier, Amount: -m.Quantity},
		{Account: to, Unit: m.Tier, Amount: m.Quantity},
	})
}

func decision(kind string, m Move, legs []ledger.Leg) ledger.Decision {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a Move has nothing that can't be JSON
	}
	return ledger.Decision{Kind: kind, Legs: legs, Data: data, Rows: []ledger.Row{moveRow{&m}}}
}

// naming is a body that needs a move's row.
type naming interface{ moveID() uuid.UUID }

// decide is the command of the second person.
type decide struct {
	id        uuid.UUID
	principal string
	approve   bool
	reason    string
	elsewhere ledger.Amount // free tickets in other lanes, which a dry run may count on
}

func (c *decide) moveID() uuid.UUID { return c.id }

// Accounts is empty: the shelf names those that the move leads to.
func (c *decide) Accounts() []string { return nil }

// Decide moves what had been asked for, if it's still free, or records the no.
func (c *decide) Decide(s *ledger.State) (ledger.Decision, error) {
	row := shelfOf(s).moves[c.id]
	switch {
	case row == nil:
		return ledger.Decision{}, moveNotFound(c.id)
	case row.Status != Awaiting:
		return ledger.Decision{}, ErrMoveDecided.Because("it's %s, by %s", row.Status, row.DecidedBy).
			With("move_status", row.Status).With("decided_by", row.DecidedBy)
	case row.AskedBy == c.principal:
		return ledger.Decision{}, fault.ErrSamePerson.Because("%s asked for it", row.AskedBy).With("move_id", c.id)
	}
	m := *row
	m.Event, m.DecidedBy = buckets.ShelfOf(s).Event.Event, c.principal
	if !c.approve {
		m.Status, m.Reason, m.Version = Rejected, c.reason, s.NextSeq()
		return decision(KindRejected, m, nil), nil
	}
	if m.To.Allotment != "" {
		if _, err := buckets.ShelfOf(s).Live(s, m.To.Allotment); err != nil {
			return ledger.Decision{}, err
		}
	}
	if err := fit(&m, s.Balance(m.account, m.Tier)+c.elsewhere); err != nil {
		return ledger.Decision{}, err
	}
	return m.execute(s), nil
}

func moveNotFound(id uuid.UUID) error { return ErrMoveNotFound.Because("%s", id).With("move_id", id) }

// receive is the command of a move's other end. It reads the move from the journal that
// the tickets left.
type receive struct{ id uuid.UUID }

// Accounts is empty: the shelf names those that the move leads to.
func (c *receive) Accounts() []string { return nil }

func (c *receive) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := shelfOf(s)
	m := shelf.sent[c.id]
	switch {
	case m == nil || m.Status != Moved || m.toJournal != s.Journal:
		return ledger.Decision{}, moveNotFound(c.id)
	case shelf.arrived[c.id]:
		return ledger.Decision{}, nil
	}
	from, _ := ledger.JournalOf(c.id)
	a := arrival{Move: c.id, From: from, Unit: m.Tier, Account: m.toAccount, Quantity: m.Quantity, At: s.Now, Version: s.NextSeq()}
	data, err := json.Marshal(a)
	return ledger.Decision{
		Kind: KindReceived, Data: data, Rows: []ledger.Row{arrivalRow{&a}},
		Legs: []ledger.Leg{
			{Account: ledger.TransitTo(m.toAccount), Unit: m.Tier, Amount: -m.Quantity},
			{Account: m.toAccount, Unit: m.Tier, Amount: m.Quantity},
		},
	}, err
}

// arrival is the other end of a move.
type arrival struct {
	Move     uuid.UUID        `json:"move_id"`
	From     ledger.JournalID `json:"from_journal"`
	Unit     ledger.Unit      `json:"tier"`
	Account  string           `json:"account"`
	Quantity ledger.Amount    `json:"quantity"`
	At       time.Time        `json:"at"`
	Version  ledger.Seq       `json:"version"`
}
