package recon

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// Store resolves cases and imports reports. It's safe for concurrent use.
type Store struct {
	*Reports
	ledger *ledger.Ledger
	orders *orders.Store
	cases  *cases.Store
}

// NewStore makes a store that commits through a ledger and reads from a pool.
func NewStore(l *ledger.Ledger, o *orders.Store, c *cases.Store, reads *pgxpool.Pool) *Store {
	return &Store{Reports: NewReports(l, books{o}, reads), ledger: l, orders: o, cases: c}
}

// Case reads a case as it is now; cases.ErrCaseNotFound when there's none.
func (s *Store) Case(ctx context.Context, id uuid.UUID) (cases.Case, error) {
	return s.cases.Get(ctx, id)
}

// Cases reads a page of cases in the order of their ids.
func (s *Store) Cases(ctx context.Context, f cases.Filter) ([]cases.Case, error) {
	return s.cases.List(ctx, f)
}

// Kinds of this package's entries about cases.
const (
	KindProposed = "case.proposed"
	KindRejected = "case.rejected"
	KindLinked   = "case.resolved" // one that's about no order
)

// maxText bounds a reason and an evidence, in bytes.
const maxText = 2000

// Resolution is what a person proposes to do about a case.
type Resolution struct {
	Resolution cases.Resolution `json:"resolution"`
	Reason     string           `json:"reason"`
	Evidence   string           `json:"evidence,omitempty"`
}

func (r *Resolution) validate() error {
	switch {
	case !r.Resolution.Valid():
		return fault.BadField("resolution", "must be %s, %s, %s or %s", cases.Honour, cases.Refund, cases.WriteOff, cases.Link)
	case r.Reason == "" || len(r.Reason) > maxText:
		return fault.BadField("reason", "must have 1 to %d bytes", maxText)
	case len(r.Evidence) > maxText:
		return fault.BadField("evidence", "must have at most %d bytes", maxText)
	case r.Resolution == cases.Link && r.Evidence == "":
		return fault.BadField("evidence", "must say where it was settled")
	}
	return nil
}

// Resolve proposes a resolution, which somebody else must approve. The receipt's data is
// the case. Errors: fault.ErrInvalidRequest with the field, cases.ErrCaseNotFound,
// buckets.ErrVersionConflict, cases.ErrCaseState, and those of ledger.Do.
func (s *Store) Resolve(ctx context.Context, principal, key string, id uuid.UUID, r Resolution, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	if err := r.validate(); err != nil {
		return ledger.Receipt{}, err
	}
	return s.do(ctx, principal, key, KindProposed, id, r, ifMatch, func(st *ledger.State, c cases.Case) (cases.Case, error) {
		if c.Status != cases.Open {
			return c, cases.ErrCaseState.Because("case %s is %s", id, c.Status).With("case_id", id).With("case_status", c.Status)
		}
		return c.Propose(principal, r.Resolution, r.Reason, r.Evidence, st.NextSeq()), nil
	})
}

// Reject takes back what somebody else proposed; the case is open again. The receipt's
// data is the case. Errors: fault.ErrInvalidRequest with the field,
// cases.ErrCaseNotFound, buckets.ErrVersionConflict, cases.ErrCaseState,
// fault.ErrSamePerson, and those of ledger.Do.
func (s *Store) Reject(ctx context.Context, principal, key string, id uuid.UUID, reason string, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	if reason == "" || len(reason) > maxText {
		return ledger.Receipt{}, fault.BadField("reason", "must have 1 to %d bytes", maxText)
	}
	return s.do(ctx, principal, key, KindRejected, id, reason, ifMatch, func(st *ledger.State, c cases.Case) (cases.Case, error) {
		if err := c.Approvable(principal, nil); err != nil {
			return c, err
		}
		return c.Reject(principal, reason, st.NextSeq()), nil
	})
}

// Approve carries out what somebody else proposed. The receipt's data is the case.
// Errors: those of orders.Store.Approve; of a case about no order
// buckets.ErrVersionConflict comes before cases.ErrCaseState.
func (s *Store) Approve(ctx context.Context, principal, key string, id uuid.UUID, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	c, err := s.cases.Get(ctx, id)
	if err != nil {
		return ledger.Receipt{}, err
	}
	if c.OrderID == nil {
		return s.do(ctx, principal, key, KindLinked, id, nil, ifMatch, func(st *ledger.State, c cases.Case) (cases.Case, error) {
			if err := c.Approvable(principal, nil); err != nil {
				return c, err
			}
			if c.Resolution != cases.Link {
				return c, cases.ErrResolution.Because("refund it at the provider: its word resolves the case, or a link to it does").
					With("case_id", id).With("resolution", c.Resolution)
			}
			c = c.Decide(principal, c.Resolution, true, st.Now, st.NextSeq())
			c.Suspended = 0
			return c, nil
		})
	}
	receipt, err := s.orders.Approve(ctx, principal, key, c, ifMatch)
	if err != nil {
		return receipt, err
	}
	return ofCase(receipt, id)
}

// change is the command that moves a case and nothing else.
type change struct {
	caseID   uuid.UUID
	kind     string
	provider string // of its money, "" for none
	ifMatch  *ledger.Seq
	to       func(*ledger.State, cases.Case) (cases.Case, error)
}

// Accounts names those that the case's money may leave.
func (c *change) Accounts() []string {
	if c.provider == "" {
		return nil
	}
	return []string{"suspense:unidentified", "provider:" + c.provider}
}

// CaseIDs names the case.
func (c *change) CaseIDs() []uuid.UUID { return []uuid.UUID{c.caseID} }

func (c *change) Decide(s *ledger.State) (ledger.Decision, error) {
	found, ok := cases.Find(s, c.caseID)
	if !ok {
		return ledger.Decision{}, cases.NotFound(c.caseID)
	}
	if err := found.Match(c.ifMatch); err != nil {
		return ledger.Decision{}, err
	}
	changed, err := c.to(s, found)
	if err != nil {
		return ledger.Decision{}, err
	}
	var legs []ledger.Leg
	if gone := found.Suspended - changed.Suspended; gone > 0 { // it left the provider's account
		legs = []ledger.Leg{
			{Account: "suspense:unidentified", Unit: found.Amount.Currency, Amount: gone},
			{Account: "provider:" + found.Provider, Unit: found.Amount.Currency, Amount: -gone},
		}
	}
	data, err := json.Marshal(struct {
		Cases []cases.Case `json:"cases"`
	}{[]cases.Case{changed}})
	return ledger.Decision{Kind: c.kind, Legs: legs, Rows: []ledger.Row{cases.Row(changed)}, Data: data}, err
}

// do commits a change of a case; the receipt's data is the case.
func (s *Store) do(ctx context.Context, principal, key, kind string, id uuid.UUID, request any, ifMatch *ledger.Seq,
	to func(*ledger.State, cases.Case) (cases.Case, error)) (ledger.Receipt, error) {
	journal, ok := ledger.JournalOf(id)
	if !ok {
		return ledger.Receipt{}, cases.NotFound(id)
	}
	known, err := s.cases.Get(ctx, id)
	if err != nil {
		return ledger.Receipt{}, err // its journal may not exist
	}
	parameters := struct {
		CaseID  uuid.UUID
		Request any
		IfMatch *ledger.Seq
	}{id, request, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, kind, parameters,
		&change{caseID: id, kind: kind, provider: known.Provider, ifMatch: ifMatch, to: to})
	if err != nil {
		return ledger.Receipt{}, err
	}
	receipt, err := s.ledger.Do(ctx, journal, c)
	if err != nil {
		return receipt, err
	}
	return ofCase(receipt, id)
}

// ofCase makes the case that an entry records the receipt's data.
func ofCase(receipt ledger.Receipt, id uuid.UUID) (ledger.Receipt, error) {
	var data struct {
		Cases []json.RawMessage `json:"cases"`
	}
	err := json.Unmarshal(receipt.Data, &data)
	for _, text := range data.Cases {
		var c struct {
			ID      uuid.UUID  `json:"case_id"`
			Version ledger.Seq `json:"version"`
		}
		if err = json.Unmarshal(text, &c); err == nil && c.ID == id {
			receipt.Data, receipt.Seq = text, c.Version
			return receipt, nil
		}
	}
	return receipt, err
}

// books shows the orders' operations to the reports.
type books struct{ orders *orders.Store }

func (b books) ByID(ctx context.Context, provider string, ids []uuid.UUID) ([]Operation, error) {
	return shown(b.orders.ByID(ctx, provider, ids))
}

func (b books) OfPayments(ctx context.Context, provider string, payments []string) ([]Operation, error) {
	return shown(b.orders.OfPayments(ctx, provider, payments))
}

func (b books) Moved(ctx context.Context, provider string, from, to time.Time) ([]Operation, error) {
	return shown(b.orders.Moved(ctx, provider, from, to))
}

func shown(list []*orders.Operation, err error) ([]Operation, error) {
	operations := make([]Operation, len(list))
	for i, op := range list {
		operations[i] = Operation{
			ID: op.ID, Order: op.Order, Kind: op.Kind, Status: string(op.Status), Provider: op.Provider,
			Payment: op.Payment, Reference: op.Reference, Amount: op.Amount, ToldAt: op.ToldAt, Captured: op.Taken(),
		}
	}
	return operations, err
}
