package seats

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Kinds of this package's entries.
const (
	KindChartLoaded = "chart.loaded"
	KindBlocked     = "seats.blocked"
	KindUnblocked   = "seats.unblocked"
)

// ChartView is what was loaded, as callers see it.
type ChartView struct {
	Event    string        `json:"event"`
	Version  ledger.Seq    `json:"version"`
	Seats    int           `json:"seats"`
	Sections []SectionView `json:"sections"`
}

// SectionView is a section of it.
type SectionView struct {
	Section    string      `json:"section"`
	Name       string      `json:"name"`
	Tier       ledger.Unit `json:"tier"`
	Rows       int         `json:"rows"`
	Seats      int         `json:"seats"`
	Accessible int         `json:"accessible"`
	Digest     string      `json:"digest"` // of the rows as they're kept: SHA-256, in hex
}

// load adds sections to an event's chart, and their tickets to the tiers.
type load struct{ chart *Chart }

func (l *load) Accounts() []string { return []string{ledger.Capacity, ledger.Available} }

// Wants asks for the chart so far.
func (l *load) Wants() Want { return Want{Chart: true} }

func (l *load) Decide(s *ledger.State) (ledger.Decision, error) {
	offer, known := buckets.ShelfOf(s), shelfOf(s).chart()
	if offer.Event == nil {
		return ledger.Decision{}, buckets.ErrEventNotFound.Because("the event isn't open yet")
	}
	if err := l.fits(offer, known); err != nil {
		return ledger.Decision{}, err
	}
	view := ChartView{Event: offer.Event.Event, Version: s.NextSeq(), Seats: l.chart.Size()}
	var legs []ledger.Leg
	var sections []*section
	for _, given := range l.chart.Sections {
		given.Name = given.display()
		text := given.rows()
		sections = append(sections, &section{Section: given, text: text})
		view.Sections = append(view.Sections, given.view(text))
		legs = append(legs, buckets.Supply(given.Tier, ledger.Amount(given.size()))...)
	}
	data, err := json.Marshal(view)
	return ledger.Decision{Kind: KindChartLoaded, Legs: legs, Data: data, Rows: []ledger.Row{loadRow{sections}}}, err
}

// LoadCommand makes the command that loads a chart. The error is ErrInvalidRequest with
// the field.
func LoadCommand(journal ledger.JournalID, principal, key string, chart Chart) (ledger.Command, error) {
	if err := chart.Validate(); err != nil {
		return ledger.Command{}, err
	}
	return ledger.NewCommand(journal, principal, key, KindChartLoaded, chart, &load{&chart})
}

// fits refuses a chart that the event can't have.
func (l *load) fits(offer *buckets.Shelf, known *plan) error {
	for i, s := range l.chart.Sections {
		tier := offer.Tiers[s.Tier]
		if tier == nil {
			return buckets.TierNotFound(s.Tier)
		}
		if err := Required(tier, true, fmt.Sprintf("sections[%d].tier", i)); err != nil {
			return err
		}
	}
	for _, s := range l.chart.Sections {
		if known.names[s.Section] != nil {
			return ErrSectionExists.Because("%s", s.Section).With("section", s.Section)
		}
	}
	if n := len(known.spots) + l.chart.Size(); n > MaxSeats || len(known.sections)+len(l.chart.Sections) > MaxSections {
		return fault.BadField("sections", "an event has at most %d seats in %d sections, and would have %d in %d",
			MaxSeats, MaxSections, n, len(known.sections)+len(l.chart.Sections))
	}
	return nil
}

// rows are a section's rows as they're kept.
func (s *Section) rows() []byte {
	text, err := json.Marshal(s.Rows)
	if err != nil {
		panic(err) // a Row has nothing that can't be JSON
	}
	return text
}

// display is the section's name for display.
func (s *Section) display() string { return cmp.Or(s.Name, s.Section) }

// View tells what a chart has, as it's told when it's loaded.
func (c *Chart) View() []SectionView {
	views := make([]SectionView, len(c.Sections))
	for i := range c.Sections {
		views[i] = c.Sections[i].view(c.Sections[i].rows())
	}
	return views
}

// view tells what a section has, whose rows are kept as a text.
func (s *Section) view(text []byte) SectionView {
	sum := sha256.Sum256(text)
	v := SectionView{Section: s.Section, Name: s.display(), Tier: s.Tier, Rows: len(s.Rows), Seats: s.size(),
		Digest: hex.EncodeToString(sum[:])}
	for i := range s.Rows {
		for _, seat := range s.Rows[i].Seats {
			if seat.Accessible {
				v.Accessible++
			}
		}
	}
	return v
}

const (
	// MaxBlock bounds the seats of one block: a large section's.
	MaxBlock  = 1_000
	maxReason = 500 // bytes
)

// BlockRequest takes free seats off sale.
type BlockRequest struct {
	Seats     []string `json:"seats"`
	Reason    string   `json:"reason"`
	Allotment string   `json:"allotment,omitempty"` // whom they're set aside for; "": nobody
}

// BlockView is a block, or its end, as callers see it.
type BlockView struct {
	Event     string     `json:"event"`
	Version   ledger.Seq `json:"version"`
	State     State      `json:"state"` // that the seats are in now
	Seats     []string   `json:"seats"`
	Reason    string     `json:"reason"`
	Allotment string     `json:"allotment,omitempty"`
}

// validate refuses what no state of the seats could make right.
func (r *BlockRequest) validate(to State) error {
	if r.Reason == "" || len(r.Reason) > maxReason {
		return fault.BadField("reason", "must have 1 to %d bytes", maxReason)
	}
	if r.Allotment != "" && to != Blocked {
		return fault.BadField("allotment", "is for seats that are blocked")
	}
	if r.Allotment != "" && !validPart(r.Allotment) {
		return badPart("allotment")
	}
	return ValidLabels("seats", r.Seats, MaxBlock)
}

// setAside takes seats off sale, or puts blocked ones back.
type setAside struct {
	request BlockRequest
	to      State // Blocked or Available
}

// BlockCommand makes the command that blocks seats, or with Available puts blocked ones
// back. The error is ErrInvalidRequest with the field.
func BlockCommand(journal ledger.JournalID, principal, key string, r BlockRequest, to State) (ledger.Command, error) {
	if err := r.validate(to); err != nil {
		return ledger.Command{}, err
	}
	body := &setAside{r, to}
	return ledger.NewCommand(journal, principal, key, body.kind(), r, body)
}

func (b *setAside) kind() string {
	if b.to == Available {
		return KindUnblocked
	}
	return KindBlocked
}

func (b *setAside) Accounts() []string { return []string{ledger.Available, ledger.Blocked} }

// Wants asks for the seats.
func (b *setAside) Wants() Want { return Want{Seats: b.request.Seats} }

// Decide blocks all seats or none: only free ones can be, and only blocked ones come back.
func (b *setAside) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := shelfOf(s)
	if err := Missing(s, b.request.Seats); err != nil {
		return ledger.Decision{}, err
	}
	var wrong []Taken
	var legs []ledger.Leg
	for _, label := range b.request.Seats {
		seat, _ := shelf.find(label)
		t, free := seat.reason(label, s.Now)
		if b.to == Blocked && !free || b.to == Available && seat.state != Blocked {
			wrong = append(wrong, t)
		}
		from, to := ledger.Available, ledger.Blocked
		if b.to == Available {
			from, to = to, from
		}
		legs = append(legs, ledger.Leg{Account: from, Unit: seat.tier(), Amount: -1},
			ledger.Leg{Account: to, Unit: seat.tier(), Amount: 1})
	}
	switch {
	case len(wrong) > 0 && b.to == Blocked:
		return ledger.Decision{}, unavailable(wrong)
	case len(wrong) > 0:
		return ledger.Decision{}, ErrNotBlocked.Because("%s is %s", wrong[0].Seat, wrong[0].Reason).With("seats", wrong)
	}
	r := b.request
	data, err := json.Marshal(BlockView{
		Event: buckets.ShelfOf(s).Event.Event, Version: s.NextSeq(), State: b.to, Seats: r.Seats, Reason: r.Reason,
		Allotment: r.Allotment,
	})
	return ledger.Decision{
		Kind: b.kind(), Legs: legs, Data: data,
		Rows: []ledger.Row{Changed(Change{Seats: r.Seats, To: b.to, Allotment: r.Allotment})},
	}, err
}

// Missing tells which of some seats the event doesn't have: the error is ErrSeatNotFound.
// They must have been asked for; see Wanting.
func Missing(s *ledger.State, labels []string) error {
	spots := shelfOf(s).chart().spots
	var missing []string
	for _, label := range labels {
		if _, ok := spots[label]; !ok {
			missing = append(missing, label)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return notFound(missing)
}

func notFound(labels []string) error {
	return ErrSeatNotFound.Because("%q", labels[0]).With("seats", labels)
}

// ValidLabels refuses a list that can't name seats: the field names it in the error, which
// is ErrInvalidRequest.
func ValidLabels(field string, labels []string, most int) error {
	if len(labels) == 0 || len(labels) > most {
		return fault.BadField(field, "must name 1 to %d seats", most)
	}
	seen := make(map[string]bool, len(labels))
	for i, label := range labels {
		switch {
		case label == "" || len(label) > 3*maxPart+2:
			return fault.BadField(fmt.Sprintf("%s[%d]", field, i), "can't be a seat's label")
		case seen[label]:
			return fault.BadField(fmt.Sprintf("%s[%d]", field, i), "%s is named twice", label)
		}
		seen[label] = true
	}
	return nil
}
