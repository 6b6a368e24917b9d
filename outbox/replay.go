package outbox

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// MaxReplayRate bounds how many letters a second a replay takes, one after the other.
	MaxReplayRate = 1000
	// defaultRate disturbs nobody.
	defaultRate = 10
	// maxLetters bounds a replay: what its request takes is one transaction.
	maxLetters = 20_000
	// maxNamedLetters bounds the letters that a request names by their ids.
	maxNamedLetters = 1000
	// maxWhy bounds why somebody did something, in bytes.
	maxWhy = 500
)

// Action is what's to be done with letters.
type Action string

// The actions. A discarded letter stays, and nothing is done for it any more.
const (
	ActReplay  Action = "replay"
	ActDiscard Action = "discard"
)

// Actions lists all of them.
func Actions() []Action { return []Action{ActReplay, ActDiscard} }

// ReplayStatus is how a replay stands.
type ReplayStatus string

// The states of a replay: awaiting_approval -> running | rejected, running <-> stopped,
// and done, which is when it has no letter left.
const (
	ReplayAwaiting ReplayStatus = "awaiting_approval"
	ReplayRejected ReplayStatus = "rejected"
	ReplayRunning  ReplayStatus = "running"
	ReplayStopped  ReplayStatus = "stopped"
	ReplayDone     ReplayStatus = "done"
)

// ReplayStatuses lists all of them.
func ReplayStatuses() []ReplayStatus {
	return []ReplayStatus{ReplayAwaiting, ReplayRejected, ReplayRunning, ReplayStopped, ReplayDone}
}

// Request asks for letters to be replayed or discarded. It names them, or gives a filter;
// which ones they are is fixed when it's made. A filter by a stopped replay takes over what
// that one has left.
type Request struct {
	Action  Action
	Filter  *LetterFilter
	Letters []uuid.UUID
	Rate    int   // letters a second; 0: 10
	Canary  *bool // the first alone, the rest only if that went well; nil: yes
	Reason  string
}

// validate refuses what no state of the letters could make right, and fills in what's left
// out.
func (r *Request) validate() error {
	if r.Rate == 0 {
		r.Rate = defaultRate
	}
	if r.Canary == nil {
		r.Canary = new(true)
	}
	switch {
	case !slices.Contains(Actions(), r.Action):
		return fault.BadField("action", "must be %s or %s", ActReplay, ActDiscard)
	case (r.Filter == nil) == (len(r.Letters) == 0):
		return fault.BadField("filter", "give one of filter and letters; an empty filter selects every dead letter")
	case len(r.Letters) > maxNamedLetters:
		return fault.BadField("letters", "must name at most %d; a filter selects more", maxNamedLetters)
	case r.Rate < 1 || r.Rate > MaxReplayRate:
		return fault.BadField("rate", "must be 1 to %d", MaxReplayRate)
	case r.Filter != nil:
		if err := r.Filter.validate("filter."); err != nil {
			return err
		}
	}
	named := make(map[uuid.UUID]struct{}, len(r.Letters))
	for _, id := range r.Letters {
		if _, again := named[id]; again {
			return fault.BadField("letters", "name %s twice", id)
		}
		named[id] = struct{}{}
	}
	return checkWhy(r.Reason)
}

func checkWhy(reason string) error {
	if reason == "" || reason != clean(reason, maxWhy) {
		return fault.BadField("reason", "must have 1 to %d bytes", maxWhy)
	}
	return nil
}

// chosen is by what a request chooses, as it's kept.
func (r *Request) chosen() (json.RawMessage, error) {
	return json.Marshal(struct {
		Filter  *LetterFilter `json:"filter,omitempty"`
		Letters []uuid.UUID   `json:"letters,omitempty"`
	}{r.Filter, r.Letters})
}

// same tells whether a replay was asked for by the same request.
func (r *Request) same(made *Replay, chosen json.RawMessage) bool {
	return made.Action == r.Action && string(made.Chosen) == string(chosen) && made.Rate == r.Rate &&
		made.Canary == *r.Canary && made.Reason == r.Reason
}

// Preview tells what a request would do.
type Preview struct {
	Action        Action        `json:"action"`
	Letters       int           `json:"letters"`
	Money         int           `json:"money"`
	NeedsApproval bool          `json:"needs_approval"` // by somebody else
	Rate          int           `json:"rate"`
	Canary        bool          `json:"canary"`
	Groups        []LetterGroup `json:"groups"`
	First         DeadLetter    `json:"first"`          // with a canary, the one that goes alone
	Taken         int           `json:"taken"`          // would be chosen too, but other replays have them
	NotReplayable int           `json:"not_replayable"` // or they could only be discarded
}

// LetterGroup counts letters of one consumer and kind.
type LetterGroup struct {
	Consumer string `json:"consumer"`
	Kind     string `json:"kind"`
	Letters  int    `json:"letters"`
}

// preview counts chosen letters; there's at least one.
func (r *Request) preview(letters []DeadLetter) Preview {
	p := Preview{Action: r.Action, Letters: len(letters), Rate: r.Rate, Canary: *r.Canary, First: letters[0]}
	groups := make(map[LetterGroup]int)
	for i := range letters {
		groups[LetterGroup{Consumer: letters[i].Consumer, Kind: letters[i].Kind}]++
		if letters[i].Money {
			p.Money++
		}
	}
	p.NeedsApproval = p.Money > 0
	for g, n := range groups {
		p.Groups = append(p.Groups, LetterGroup{g.Consumer, g.Kind, n})
	}
	slices.SortFunc(p.Groups, func(a, b LetterGroup) int {
		if a.Letters != b.Letters {
			return b.Letters - a.Letters
		}
		return strings.Compare(a.Consumer+" "+a.Kind, b.Consumer+" "+b.Kind)
	})
	return p
}

// Replay is a request and how far it is.
type Replay struct {
	ID          uuid.UUID       `json:"replay_id"`
	Action      Action          `json:"action"`
	Status      ReplayStatus    `json:"status"`
	Chosen      json.RawMessage `json:"chosen"` // by what: a filter, or letters
	Rate        int             `json:"rate"`
	Canary      bool            `json:"canary"`
	Reason      string          `json:"reason"`
	RequestedBy string          `json:"requested_by"`
	RequestedAt time.Time       `json:"requested_at"`
	DecidedBy   string          `json:"decided_by,omitempty"` // who approved or rejected it
	ChangedAt   time.Time       `json:"changed_at"`           // when its status became what it is
	Note        string          `json:"note,omitempty"`       // why it stands where it does
	Letters     int             `json:"letters"`
	Money       int             `json:"money"`  // of those, about money
	Done        int             `json:"done"`   // replayed, or discarded
	Failed      int             `json:"failed"` // died again
	Freed       int             `json:"freed"`  // let go of
	Left        int             `json:"left"`
	DueAt       *time.Time      `json:"due_at,omitempty"` // when the next is taken
	Steps       []ReplayStep    `json:"steps,omitempty"`  // only of one that's read alone
}

// ReplayStep is what was done with a replay, by whom and why.
type ReplayStep struct {
	Step   string    `json:"step"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`

	replay uuid.UUID
}

// The steps of a replay.
const (
	stepRequested = "requested"
	stepApproved  = "approved"
	stepRejected  = "rejected"
	stepStopped   = "stopped"
	stepResumed   = "resumed"
	stepTakenOver = "taken_over"
	stepDone      = "done"
)

func scanReplay(row pgx.CollectableRow) (r Replay, err error) {
	err = row.Scan(&r.ID, &r.Action, &r.Status, &r.Chosen, &r.Rate, &r.Canary, &r.Reason, &r.RequestedBy, &r.RequestedAt,
		&r.DecidedBy, &r.ChangedAt, &r.Note, &r.Letters, &r.Money, &r.Done, &r.Failed, &r.Freed, &r.DueAt)
	r.RequestedAt, r.ChangedAt = r.RequestedAt.UTC(), r.ChangedAt.UTC()
	if r.DueAt != nil {
		*r.DueAt = r.DueAt.UTC()
	}
	r.Left = r.Letters - r.Done - r.Failed - r.Freed
	return r, err
}

func scanStep(row pgx.CollectableRow) (s ReplayStep, err error) {
	err = row.Scan(&s.replay, &s.Step, &s.By, &s.At, &s.Reason)
	s.At = s.At.UTC()
	return s, err
}

// keyed is the id of what's asked for under a key.
func keyed(principal, key string) uuid.UUID {
	return ledger.NewID(ledger.System, principal, key, "replay")
}
