package quota

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Options configure a store.
type Options struct {
	Ledger *ledger.Ledger
	Reader *ledger.Reader
	Events *buckets.Store
	Reads  *pgxpool.Pool
	// Prefers tells which lanes of an event this process takes care of first; nil: all.
	Prefers func(lane int) bool
	// Observe is told of every move that this process decided on, but for what ended allotments
	// give back; may be nil.
	Observe func(Move)
	Log     *slog.Logger // nil: nowhere
}

// Store moves quotas and reads where they are. It's safe for concurrent use.
type Store struct {
	Options

	mu     sync.Mutex
	pulls  map[bucketKey]*puller
	closed context.Context // of the pulls under way
	stop   context.CancelFunc
	active sync.WaitGroup

	watch watch
}

// NewStore makes a store. Close it before its ledger.
func NewStore(o Options) *Store {
	if o.Prefers == nil {
		o.Prefers = func(int) bool { return true }
	}
	if o.Observe == nil {
		o.Observe = func(Move) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{Options: o, pulls: make(map[bucketKey]*puller)}
	s.closed, s.stop = context.WithCancel(context.Background())
	return s
}

// Close stops the pulls under way, between two moves.
func (s *Store) Close() {
	s.stop()
	s.active.Wait()
}

// Request is a move as an operator asks for it.
type Request struct {
	Tier     ledger.Unit    `json:"tier"`
	From     Bucket         `json:"from"`
	To       Bucket         `json:"to"`
	Quantity *ledger.Amount `json:"quantity,omitempty"` // all of it or nothing
	UpTo     *ledger.Amount `json:"up_to,omitempty"`    // as many as are free, up to it
	Reason   string         `json:"reason"`
}

// validate refuses what no state of the event could make right.
func (r *Request) validate() error {
	n, field := r.Quantity, "quantity"
	if n == nil {
		n, field = r.UpTo, "up_to"
	}
	switch {
	case (r.Quantity == nil) == (r.UpTo == nil):
		return fault.BadField("quantity", "give one of quantity and up_to")
	case *n < 1 || *n > maxMove:
		return fault.BadField(field, "must be 1 to %d", maxMove)
	case r.Reason == "" || len(r.Reason) > buckets.MaxReason:
		return fault.BadField("reason", "must have 1 to %d bytes", buckets.MaxReason)
	case r.From.Lane < 0:
		return fault.BadField("from.lane", "must be at least 1")
	case r.To.Lane < 0:
		return fault.BadField("to.lane", "must be at least 1")
	case !buckets.ValidID(string(r.Tier)): // the database couldn't even compare it
		return buckets.TierNotFound(r.Tier)
	case r.From.Allotment != "" && !buckets.ValidID(r.From.Allotment):
		return buckets.AllotmentNotFound(r.From.Allotment)
	case r.To.Allotment != "" && !buckets.ValidID(r.To.Allotment):
		return buckets.AllotmentNotFound(r.To.Allotment)
	case r.From == r.To:
		return fault.BadField("to", "is the bucket that the tickets are in")
	}
	return nil
}

// maxMove bounds a move: more than any tier has.
const maxMove = 10_000_000

// Move moves tickets as an operator asks. Without a lane to take them from, the first lane
// gives them, after it has got from the others what it's short of; without one to bring
// them to, they stay in the lane they're in. The receipt's data is the move: one that awaits
// approval has that status. With ifMatch only if the account that they leave still has that
// version. Errors: ErrInvalidRequest with the field, buckets.ErrEventNotFound,
// buckets.ErrLaneNotFound, buckets.ErrTierNotFound, buckets.ErrAllotmentNotFound,
// buckets.ErrAllotmentClosed, buckets.ErrVersionConflict, ledger.ErrInsufficientFree with
// what is free and asked, and those of ledger.Do.
func (s *Store) Move(ctx context.Context, principal, key, event string, r Request, ifMatch *ledger.Seq, dryRun bool) (ledger.Receipt, error) {
	home, err := s.Events.Journal(ctx, event)
	if err == nil {
		err = r.validate()
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	journal, err := s.Events.LaneJournal(ctx, event, r.From.Lane)
	if err != nil {
		return ledger.Receipt{}, err
	}
	body := &send{
		principal: principal, unit: r.Tier, account: ledger.FreeOf(r.From.Allotment), to: ledger.FreeOf(r.To.Allotment),
		toLane: r.To.Lane, anyLane: r.From.Lane == 0, cause: ByOperator, reason: r.Reason, ifMatch: ifMatch,
	}
	if r.Quantity != nil {
		body.quantity = *r.Quantity
	} else {
		body.quantity, body.upTo = *r.UpTo, true
	}
	parameters := struct {
		Request
		IfMatch *ledger.Seq
	}{r, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, KindMoved, parameters, body)
	if err != nil {
		return ledger.Receipt{}, err
	}
	body.id, c.DryRun = c.ID, dryRun
	if err := s.once(ctx, event, journal, principal, key); err != nil {
		return ledger.Receipt{}, err
	}
	if r.From.Lane != 0 {
		return s.finish(ctx, journal, c)
	}
	need := Need{body.account, body.unit, body.quantity}
	do := func(elsewhere ledger.Amount, preview bool) (ledger.Receipt, error) {
		c, body := c, *body
		body.elsewhere, body.preview = elsewhere, preview
		c.Body, c.DryRun = &body, preview
		return s.finish(ctx, journal, c)
	}
	if dryRun {
		free, err := s.Events.Free(ctx, event, need.Account, need.Unit)
		if err != nil {
			return ledger.Receipt{}, err
		}
		return do(free.Total-free.Of(home), true)
	}
	return s.collect(ctx, event, home, need, body.upTo, do)
}

// once refuses a key under which a move out of another lane was asked for: a command's id
// is that of its journal.
func (s *Store) once(ctx context.Context, event string, journal ledger.JournalID, principal, key string) error {
	journals, err := s.Events.Lanes(ctx, event)
	if err != nil {
		return err
	}
	var elsewhere []uuid.UUID
	for _, j := range journals {
		if j != journal {
			elsewhere = append(elsewhere, ledger.NewID(j, principal, key))
		}
	}
	used, err := s.Reader.Accepted(ctx, elsewhere...)
	if err == nil && used {
		err = ledger.ErrIdempotencyMismatch.Because("the key was used for a move out of another lane")
	}
	return err
}

// collect makes a move out of the first lane of an event after that has got from the others
// what it's short of. Buyers may take away again what was brought: then once more, as long
// as all lanes together have enough, or what's under way makes it enough.
func (s *Store) collect(ctx context.Context, event string, home ledger.JournalID, n Need, upTo bool, move attempt) (ledger.Receipt, error) {
	least := n.Quantity
	if upTo {
		least = 1
	}
	for tried := range maxShrinks {
		free, err := s.Events.Free(ctx, event, n.Account, n.Unit)
		if err != nil {
			return ledger.Receipt{}, err
		}
		if tried > 0 && free.Total+free.UnderWay < least {
			return ledger.Receipt{}, insufficient(n.Unit, free.Total, n.Quantity)
		}
		receipt, err := s.collectOnce(ctx, event, home, n, free, move)
		if !errors.Is(err, ledger.ErrInsufficientFree) {
			return receipt, err
		}
		if err := pause(ctx); err != nil {
			return ledger.Receipt{}, err
		}
	}
	return ledger.Receipt{}, ledger.ErrOverloaded.Because("buyers were always first").After(time.Second)
}

// attempt makes a move, or previews it; what other lanes have may count.
type attempt func(elsewhere ledger.Amount, preview bool) (ledger.Receipt, error)

// collectOnce brings to the first lane what a move is short of there, and makes it. The move
// is first tried as if that had been done: what would be refused then, or needs no tickets
// yet, brings none.
func (s *Store) collectOnce(ctx context.Context, event string, home ledger.JournalID, n Need, free buckets.Free, move attempt) (ledger.Receipt, error) {
	elsewhere := free.Total - free.Of(home)
	if n.Quantity <= free.Of(home) || elsewhere == 0 {
		return move(elsewhere, false)
	}
	would, err := move(elsewhere, true)
	if err != nil {
		return ledger.Receipt{}, err
	}
	if would.Kind != KindRequested && !would.Replayed {
		n.Quantity = min(n.Quantity, free.Total) // fewer may do: then all that there is
		if _, err := s.gather(ctx, event, home, []Need{n}, Collect); err != nil {
			return ledger.Receipt{}, err
		}
	}
	return move(elsewhere, false)
}

// finish does the first half of a move, and the second.
func (s *Store) finish(ctx context.Context, journal ledger.JournalID, c ledger.Command) (ledger.Receipt, error) {
	receipt, err := s.Ledger.Do(ctx, journal, c)
	if err != nil || c.DryRun || receipt.Kind != KindSent && receipt.Kind != KindMoved {
		return receipt, err
	}
	var m Move
	if err := json.Unmarshal(receipt.Data, &m); err != nil {
		return receipt, err
	}
	if !receipt.Replayed {
		s.Observe(m)
	}
	if receipt.Kind == KindSent {
		if err := s.arrive(ctx, m.ID); err != nil {
			s.Log.Warn("a quota move is under way", slog.String("move_id", m.ID.String()), slog.Any("error", err))
		}
	}
	return receipt, nil
}

// arrive does the second half of a move that was decided. It may have been done.
func (s *Store) arrive(ctx context.Context, id uuid.UUID) error {
	m, err := s.read(ctx, id)
	if err != nil || m.Status != Moved {
		return err
	}
	return s.receive(ctx, id, m.toJournal)
}

func (s *Store) receive(ctx context.Context, id uuid.UUID, to ledger.JournalID) error {
	c, err := ledger.NewCommand(to, ledger.SystemPrincipal, KindReceived+" "+id.String(), KindReceived, id, &receive{id})
	if err != nil {
		return err
	}
	_, err = s.Ledger.Do(ctx, to, c)
	return err
}

// Decide approves or rejects a move that awaits it. The receipt's data is the move. Errors:
// ErrMoveNotFound, ErrMoveDecided, fault.ErrSamePerson, buckets.ErrAllotmentClosed,
// ledger.ErrInsufficientFree, ErrInvalidRequest with the field, and those of ledger.Do.
func (s *Store) Decide(ctx context.Context, principal, key string, id uuid.UUID, approve bool, reason string) (ledger.Receipt, error) {
	m, err := s.Get(ctx, id)
	if err == nil && (len(reason) > buckets.MaxReason || reason == "" && !approve) {
		err = fault.BadField("reason", "must have 1 to %d bytes", buckets.MaxReason)
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	journal, _ := ledger.JournalOf(id)
	body := &decide{id: id, principal: principal, approve: approve, reason: reason}
	parameters := struct {
		Move    uuid.UUID
		Approve bool
		Reason  string
	}{id, approve, reason}
	c, err := ledger.NewCommand(journal, principal, key, "quota.decided", parameters, body)
	if err != nil {
		return ledger.Receipt{}, err
	}
	do := func(elsewhere ledger.Amount, preview bool) (ledger.Receipt, error) {
		c, body := c, *body
		if preview {
			body.elsewhere = elsewhere
		}
		c.Body, c.DryRun = &body, preview
		return s.finish(ctx, journal, c)
	}
	if approve && m.AnyLane {
		return s.collect(ctx, m.Event, journal, Need{m.account, m.Tier, m.Quantity}, m.UpTo, do)
	}
	return do(0, false)
}

// observe tells of a move that was made.
func (s *Store) observe(r ledger.Receipt) (m Move) {
	if err := json.Unmarshal(r.Data, &m); err == nil {
		s.Observe(m)
	}
	return m
}
