package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
)

// KindPosted is the kind of a manual entry.
const KindPosted = "entry.posted"

const (
	maxLegs        = 100             // of a manual entry: more is an import, not a correction
	maxConditions  = 100             // likewise
	maxLegAmount   = Amount(1) << 50 // about 10^15: a hundred of them still fit 63 bits
	maxDescription = 500             // bytes
)

// Post is the command of a manual entry: a correction or a transfer by a person.
type Post struct {
	ID          uuid.UUID   // the command's id, for the answer
	Description string      // why, for whoever reads the books
	Legs        []Leg       // at most one per account and unit
	Conditions  []Condition // all must hold, else nothing is posted
	// Units tells why tickets or money of a unit can't be posted by hand; "" if they can.
	Units func(*State, Unit) string
}

// Condition is what an account must be like for an entry to be posted.
type Condition struct {
	Account string
	Unit    Unit
	Version *Seq    // before the entry
	Balance Balance // after the entry
}

// Balance bounds a balance; nil is no bound.
type Balance struct {
	GTE *Amount `json:"gte,omitempty"`
	LTE *Amount `json:"lte,omitempty"`
	EQ  *Amount `json:"eq,omitempty"`
}

// holds tells whether an amount is within the bounds.
func (b Balance) holds(a Amount) bool {
	return (b.GTE == nil || a >= *b.GTE) && (b.LTE == nil || a <= *b.LTE) && (b.EQ == nil || a == *b.EQ)
}

// Accounts names the accounts of the legs and of the conditions.
func (p *Post) Accounts() []string {
	codes := make([]string, 0, len(p.Legs)+len(p.Conditions))
	for _, l := range p.Legs {
		codes = append(codes, l.Account)
	}
	for _, c := range p.Conditions {
		codes = append(codes, c.Account)
	}
	return codes
}

// Validate refuses what no state of the journal could make right. The error is
// ErrInvalidRequest with the field, ErrAccountReserved or ErrUnbalanced.
func (p *Post) Validate() error {
	switch {
	case p.Description == "" || len(p.Description) > maxDescription:
		return fault.BadField("description", "must have 1 to %d bytes", maxDescription)
	case len(p.Legs) < 2 || len(p.Legs) > maxLegs:
		return fault.BadField("postings", "an entry has 2 to %d postings", maxLegs)
	case len(p.Conditions) > maxConditions:
		return fault.BadField("conditions", "at most %d", maxConditions)
	}
	sums := make(map[Unit]Amount)
	seen := make(map[AccountKey]bool)
	for i, l := range p.Legs {
		field := fmt.Sprintf("postings[%d]", i)
		h, ok := classify(l.Account)
		key := AccountKey{l.Account, l.Unit}
		switch {
		case !ok:
			return fault.BadField(field+".account", "%q isn't in the chart of accounts", l.Account)
		case !h.fits(l.Unit):
			return fault.BadField(field+".unit", "%s account %s can't count %q", h.kind, l.Account, l.Unit)
		case l.Amount == 0 || l.Amount > maxLegAmount || l.Amount < -maxLegAmount:
			return fault.BadField(field+".amount", "must be between -%d and %d and not 0", maxLegAmount, maxLegAmount)
		case seen[key]:
			return fault.BadField(field, "a second posting to %s in %s", l.Account, l.Unit)
		case !h.manual:
			return ErrAccountReserved.Because("%s can't be posted to by hand", l.Account).
				With("field", field+".account").With("account", l.Account)
		}
		seen[key] = true
		sums[l.Unit] += l.Amount
	}
	for i, c := range p.Conditions {
		if h, ok := classify(c.Account); !ok || !h.fits(c.Unit) {
			return fault.BadField(fmt.Sprintf("conditions[%d]", i), "%q can't count %q", c.Account, c.Unit)
		}
	}
	for _, l := range p.Legs {
		if sum := sums[l.Unit]; sum != 0 {
			return ErrUnbalanced.Because("the postings in %s sum to %d", l.Unit, sum).
				With("unit", l.Unit).With("difference", sum)
		}
	}
	return nil
}

// Decide posts the entry if its conditions hold.
func (p *Post) Decide(s *State) (Decision, error) {
	change := make(map[AccountKey]Amount, len(p.Legs))
	answer := EntryView{ID: p.ID, Seq: s.NextSeq(), Kind: KindPosted, At: s.Now, Description: p.Description}
	for i, l := range p.Legs {
		if why := p.Units(s, l.Unit); why != "" {
			return Decision{}, fault.BadField(fmt.Sprintf("postings[%d].unit", i), "%s", why)
		}
		a := s.Account(l.Account, l.Unit)
		after, ok := add(a.Balance, l.Amount)
		switch {
		case !ok:
			return Decision{}, fault.BadField(fmt.Sprintf("postings[%d].amount", i), "the balance would overflow")
		case a.Type == Inventory && after < 0:
			return Decision{}, ErrInsufficientFree.Because("%s has %d of %s", l.Account, a.Balance, l.Unit).
				With("account", l.Account).With("unit", l.Unit).With("free", a.Balance).With("asked", -l.Amount)
		}
		change[a.AccountKey] = l.Amount
		answer.Postings = append(answer.Postings, PostingView{l.Account, l.Unit, l.Amount, after, s.NextSeq()})
	}
	for _, c := range p.Conditions {
		a := s.Account(c.Account, c.Unit)
		after := a.Balance + change[a.AccountKey]
		if c.Version != nil && *c.Version != a.Version || !c.Balance.holds(after) {
			return Decision{}, ErrConditionFailed.
				Because("%s in %s has version %d and would have balance %d", c.Account, c.Unit, a.Version, after).
				With("account", c.Account).With("unit", c.Unit).
				With("version", a.Version).With("balance", a.Balance)
		}
	}
	data, err := json.Marshal(answer)
	return Decision{Kind: KindPosted, Legs: p.Legs, Data: data}, err
}

// EntryView is an entry as callers see it.
type EntryView struct {
	Seq         Seq             `json:"seq"`
	ID          uuid.UUID       `json:"id"`
	Kind        string          `json:"kind"`
	At          time.Time       `json:"at"`
	Principal   string          `json:"principal,omitempty"`
	Description string          `json:"description,omitempty"`
	Postings    []PostingView   `json:"postings"`
	Data        json.RawMessage `json:"data,omitempty"`
	Digest      string          `json:"digest,omitempty"` // hex
	Hash        string          `json:"hash,omitempty"`   // hex
}

// PostingView is a posting as callers see it.
type PostingView struct {
	Account string `json:"account"`
	Unit    Unit   `json:"unit"`
	Amount  Amount `json:"amount"`
	Balance Amount `json:"balance"` // after
	Version Seq    `json:"version"` // after
}
