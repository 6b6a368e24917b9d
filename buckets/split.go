package buckets

import (
	"encoding/json"

	"github.com/tierledger/tierledger/ledger"
)

// Kinds of entries about lanes.
const (
	KindLaneCreated  = "lane.created"  // in the system journal; its seq is the lane's journal
	KindLaneOpened   = "lane.opened"   // in the lane's
	KindLanesChanged = "lanes.changed" // in the home's, then in each other lane's
	// KindLanesConfirmed records that they were as asked for, so that a repeat of the request
	// after somebody else's change changes nothing.
	KindLanesConfirmed = "lanes.confirmed"
)

// createLane takes a lane's place in the directory.
type createLane struct {
	Event string           `json:"event"`
	Home  ledger.JournalID `json:"home"`
	Lane  int              `json:"lane"`
}

func (c *createLane) name() (string, int) { return c.Event, c.Lane }

func (c *createLane) Accounts() []string { return nil }

func (c *createLane) Decide(s *ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(c)
	return ledger.Decision{
		Kind: KindLaneCreated, Data: data, Rows: []ledger.Row{createdRow{laneName{c.Event, c.Lane}, s.NextSeq()}},
	}, err
}

// openLane begins a lane's journal. Nobody is sent there yet.
type openLane struct {
	lane     int
	journals []ledger.JournalID // up to its own
}

func (o *openLane) Accounts() []string { return nil }

func (o *openLane) Decide(s *ledger.State) (ledger.Decision, error) {
	if ShelfOf(s).Lane != nil {
		return ledger.Decision{}, nil // it was opened
	}
	layout := Whole(o.journals[0])
	layout.Journals = o.journals
	row := Lane{Lane: o.lane, Layout: layout, Version: s.NextSeq()}
	data, err := json.Marshal(viewLanes("", &row, ""))
	return ledger.Decision{Kind: KindLaneOpened, Data: data, Rows: []ledger.Row{laneRow{row}}}, err
}

// LanesView is how an event is split, as callers see it.
type LanesView struct {
	Event      string             `json:"event,omitempty"`
	Lane       int                `json:"lane"`  // whose journal says so
	Lanes      int                `json:"lanes"` // in use
	Generation int64              `json:"generation"`
	Counts     []int              `json:"counts"`
	Journals   []ledger.JournalID `json:"journals"` // of every lane there ever was
	Reason     string             `json:"reason,omitempty"`
	Version    ledger.Seq         `json:"version"`
}

func viewLanes(event string, l *Lane, reason string) LanesView {
	return LanesView{event, l.Lane, l.Lanes(), l.Generation, l.Counts, l.Journals, reason, l.Version}
}

// changeLanes puts a number of lanes in use, in the home's journal. The others follow.
type changeLanes struct {
	lanes    int
	journals []ledger.JournalID // of at least so many, all opened
	reason   string
	ifMatch  *ledger.Seq
}

func (c *changeLanes) Accounts() []string { return []string{ledger.Held, ledger.Sold} }

func (c *changeLanes) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	old := Lane{Lane: 1, Layout: Whole(s.Journal)}
	if shelf.Lane != nil {
		old = *shelf.Lane
	}
	if c.ifMatch != nil && *c.ifMatch != old.Version {
		return ledger.Decision{}, ErrVersionConflict.Because("the lanes have version %d", old.Version).
			With("version", old.Version)
	}
	for _, t := range shelf.Tiers {
		if t.Seated {
			return ledger.Decision{}, ErrNotSplittable.Because("%s is sold by seat", t.Tier).With("tier", t.Tier)
		}
	}
	if c.lanes == old.Lanes() {
		data, err := json.Marshal(viewLanes(shelf.Event.Event, &old, c.reason))
		return ledger.Decision{Kind: KindLanesConfirmed, Data: data}, err
	}
	journals := c.journals
	if len(old.Journals) > len(journals) {
		journals = old.Journals
	}
	layout := old.change(c.lanes, journals)
	if shelf.Lane == nil && untouched(s) {
		layout.Counts = []int{c.lanes} // nobody was in the first lane alone
	}
	row := Lane{Lane: 1, Layout: layout, Version: s.NextSeq()}
	data, err := json.Marshal(viewLanes(shelf.Event.Event, &row, c.reason))
	return ledger.Decision{Kind: KindLanesChanged, Data: data, Rows: []ledger.Row{laneRow{row}}}, err
}

// untouched tells whether nobody has ever held a ticket in the journal.
func untouched(s *ledger.State) bool {
	for tier := range ShelfOf(s).Tiers {
		if s.Account(ledger.Held, tier).Version != 0 || s.Account(ledger.Sold, tier).Version != 0 {
			return false
		}
	}
	return true
}

// followLanes tells a lane of a layout that the home's journal has.
type followLanes struct{ layout Layout }

func (f *followLanes) Accounts() []string { return nil }

func (f *followLanes) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	if shelf.Lane == nil || shelf.Lane.Generation >= f.layout.Generation {
		return ledger.Decision{}, nil
	}
	row := Lane{Lane: shelf.Lane.Lane, Layout: f.layout, Version: s.NextSeq()}
	data, err := json.Marshal(viewLanes(shelf.Event.Event, &row, ""))
	return ledger.Decision{Kind: KindLanesChanged, Data: data, Rows: []ledger.Row{laneRow{row}}}, err
}
