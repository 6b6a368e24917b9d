package buckets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Lanes lists the journals of an event's lanes, the first lane's first: all that there ever
// were, as those that aren't in use may still have what was sold there. For reads of the
// whole event.
func (s *Store) Lanes(ctx context.Context, event string) ([]ledger.JournalID, error) {
	if _, err := s.Journal(ctx, event); err != nil {
		return nil, err
	}
	rows, err := s.reads.Query(ctx, sqlFindLanes, int64(ledger.System), event)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find lanes of %s: %w", event, err))
	}
	journals, err := pgx.CollectRows(rows, pgx.RowTo[ledger.JournalID])
	return journals, pg.Fault(err)
}

// LaneJournal finds the journal of one lane of an event; of the first for 0.
// ErrLaneNotFound when the event never had it: one that's only being made is in no layout.
func (s *Store) LaneJournal(ctx context.Context, event string, lane int) (ledger.JournalID, error) {
	if lane == 0 || lane == 1 {
		return s.Journal(ctx, event)
	}
	layout, err := s.Look(ctx, event)
	if err == nil && (lane < 1 || lane > len(layout.Journals)) {
		err = LaneNotFound(lane)
	}
	if err != nil {
		return 0, err
	}
	return layout.Journals[lane-1], nil
}

// LaneNotFound is ErrLaneNotFound about a lane.
func LaneNotFound(lane int) error {
	return ErrLaneNotFound.Because("%d", lane).With("lane", lane)
}

// Layout gives an event's layout as this process last saw it. It's a hint where to send a
// command: the lane's journal decides whether that's still right. After ErrLaneChanging
// look again with Look.
func (s *Store) Layout(ctx context.Context, event string) (Layout, error) {
	if l, ok := s.layouts.Load(event); ok {
		return l.(Layout), nil
	}
	return s.Look(ctx, event)
}

// Look reads an event's layout from its home.
func (s *Store) Look(ctx context.Context, event string) (Layout, error) {
	home, err := s.Journal(ctx, event)
	if err != nil {
		return Layout{}, err
	}
	view, err := s.LanesView(ctx, event, home)
	if err != nil {
		return Layout{}, err
	}
	layout := Layout{Generation: view.Generation, Counts: view.Counts, Journals: view.Journals}
	s.layouts.Store(event, layout)
	return layout, nil
}

// LanesView reads how an event is split, from the journal of one of its lanes.
func (s *Store) LanesView(ctx context.Context, event string, journal ledger.JournalID) (LanesView, error) {
	l := Lane{Lane: 1, Layout: Whole(journal)}
	err := s.reads.QueryRow(ctx, sqlLayout, int64(journal)).Scan(&l.Lane, &l.Generation, &l.Counts, &l.Journals, &l.Version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return LanesView{}, pg.Fault(fmt.Errorf("read lanes of %s: %w", event, err))
	}
	return viewLanes(event, &l, ""), nil
}

// Split puts a number of lanes in use, more than now or fewer. The receipt's data is a
// LanesView. The first lane then goes by the new layout; Follow tells the others. Errors: ErrEventNotFound, ErrInvalidRequest with
// the field, ErrVersionConflict, ErrNotSplittable, and those of ledger.Do.
func (s *Store) Split(ctx context.Context, principal, key, event string, lanes int, reason string, ifMatch *ledger.Seq, dryRun bool) (ledger.Receipt, error) {
	home, err := s.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	switch {
	case lanes < 1 || lanes > MaxLanes:
		return ledger.Receipt{}, fault.BadField("lanes", "must be 1 to %d", MaxLanes)
	case len(reason) > MaxReason:
		return ledger.Receipt{}, fault.BadField("reason", "must have at most %d bytes", MaxReason)
	}
	body := &changeLanes{lanes: lanes, reason: reason, ifMatch: ifMatch}
	parameters := struct {
		Lanes   int
		Reason  string
		IfMatch *ledger.Seq
	}{lanes, reason, ifMatch}
	c, err := ledger.NewCommand(home, principal, key, KindLanesChanged, parameters, body)
	if err != nil {
		return ledger.Receipt{}, err
	}
	layout, err := s.Look(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	body.journals = slices.Clone(layout.Journals)
	// Without its lanes' journals it's decided as in a dry run, so that a no makes none.
	c.DryRun = true
	body.journals = append(body.journals, make([]ledger.JournalID, max(0, lanes-len(layout.Journals)))...)
	receipt, err := s.ledger.Do(ctx, home, c)
	if err != nil || dryRun {
		return receipt, err
	}
	body.journals = body.journals[:len(layout.Journals)]
	for lane := len(layout.Journals) + 1; lane <= lanes; lane++ {
		journal, err := s.createLane(ctx, event, body.journals, lane)
		if err != nil {
			return ledger.Receipt{}, err
		}
		body.journals = append(body.journals, journal)
	}
	c.DryRun = false
	return s.ledger.Do(ctx, home, c)
}

// createLane makes a lane's journal, or finds it made, and opens it.
func (s *Store) createLane(ctx context.Context, event string, before []ledger.JournalID, lane int) (ledger.JournalID, error) {
	create := &createLane{Event: event, Home: before[0], Lane: lane}
	name := fmt.Sprintf("%s %s %d", KindLaneCreated, event, lane)
	c, err := ledger.NewCommand(ledger.System, ledger.SystemPrincipal, name, KindLaneCreated, create, create)
	if err != nil {
		return 0, err
	}
	created, err := s.ledger.Do(ctx, ledger.System, c)
	if err != nil {
		return 0, err
	}
	journal := ledger.JournalID(created.Seq)
	if err := s.ledger.Create(ctx, journal); err != nil {
		return 0, err
	}
	open := &openLane{lane: lane, journals: append(slices.Clone(before), journal)}
	c, err = ledger.NewCommand(journal, ledger.SystemPrincipal, KindLaneOpened, KindLaneOpened, open.journals, open)
	if err != nil {
		return 0, err
	}
	_, err = s.ledger.Do(ctx, journal, c)
	return journal, err
}

// Follow tells every lane of an event's newest layout. Until it's done, customers whose lane
// changes wait. It's idempotent.
func (s *Store) Follow(ctx context.Context, event string) error {
	layout, err := s.Look(ctx, event)
	if err != nil {
		return err
	}
	var failed []error
	for _, journal := range layout.Journals[1:] {
		c, err := ledger.NewCommand(journal, ledger.SystemPrincipal,
			KindLanesChanged+" "+strconv.FormatInt(layout.Generation, 10), KindLanesChanged, layout, &followLanes{layout})
		if err != nil {
			return err
		}
		if _, err := s.ledger.Do(ctx, journal, c); err != nil {
			failed = append(failed, fmt.Errorf("lane of journal %d: %w", journal, err))
		}
	}
	return errors.Join(failed...)
}

// followTimeout bounds the work on one event, so that it keeps no other waiting.
const followTimeout = 2 * time.Second

// FollowLanes tells lanes of a newer layout that their event's home has, because whoever
// split or merged died in between. It's idempotent; any number may run at once.
func (s *Store) FollowLanes(ctx context.Context) error {
	events, err := s.events(ctx, sqlLanesBehind)
	if err != nil {
		return err
	}
	var failed []error
	for _, event := range events {
		ctx, cancel := context.WithTimeout(ctx, followTimeout)
		if err := s.Follow(ctx, event); err != nil {
			failed = append(failed, fmt.Errorf("lanes of %s: %w", event, err))
		}
		cancel()
	}
	return errors.Join(failed...)
}

// SplitEvents lists the events that were ever split, each with the sum of the numbers of its
// lanes' last entries: while that stays, nothing has happened.
func (s *Store) SplitEvents(ctx context.Context) (map[string]ledger.Seq, error) {
	rows, err := s.reads.Query(ctx, sqlSplitEvents)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find split events: %w", err))
	}
	list := make(map[string]ledger.Seq)
	var event string
	var seq ledger.Seq
	_, err = pgx.ForEachRow(rows, []any{&event, &seq}, func() error {
		list[event] = seq
		return nil
	})
	return list, pg.Fault(err)
}

// InTransit lists the events of which tickets are between lanes.
func (s *Store) InTransit(ctx context.Context) ([]string, error) { return s.events(ctx, sqlInTransit) }

func (s *Store) events(ctx context.Context, sql string) ([]string, error) {
	rows, err := s.reads.Query(ctx, sql)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find split events: %w", err))
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return events, pg.Fault(err)
}
