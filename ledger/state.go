package ledger

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"
)

// State is what a batch knows of its journal: the rows that were read, as the
// commands decided so far left them. A decision reads it; only apply changes it.
type State struct {
	Journal JournalID
	Now     time.Time // the database's clock under the lock, never before the last entry

	seq      Seq
	hash     Hash
	loaded   map[string]struct{}     // codes whose accounts have been read; nil in Memory: all
	accounts map[AccountKey]*balance // those that exist
	past     map[uuid.UUID]pastEntry
	shelves  []Shelf
	entries  []Entry // new ones
	buf      []byte
}

// balance is an account in memory.
type balance struct {
	Account
	created bool // it isn't in the database yet
	changed bool
}

// pastEntry is what an entry's repeat needs to know of it.
type pastEntry struct {
	digest  Hash
	receipt Receipt
}

// NextSeq is the seq that the entry of the command being decided would get.
func (s *State) NextSeq() Seq { return s.seq + 1 }

// Head is the seq of the last entry.
func (s *State) Head() Seq { return s.seq }

// Account gives an account as it stands; one that doesn't exist yet is empty, of
// version 0. It panics when the account hadn't been asked for: that's a bug in
// the command's Accounts.
func (s *State) Account(code string, unit Unit) Account {
	key := AccountKey{code, unit}
	if a, ok := s.accounts[key]; ok {
		return a.Account
	}
	if _, ok := s.loaded[code]; !ok && s.loaded != nil {
		panic(fmt.Sprintf("ledger: account %s wasn't read", code))
	}
	a, _ := newAccount(key)
	return a
}

// Balance is Account's balance.
func (s *State) Balance(code string, unit Unit) Amount { return s.Account(code, unit).Balance }

// ShelfOf finds the shelf of type S; it panics when the ledger was opened
// without it.
func ShelfOf[S Shelf](s *State) S {
	for _, shelf := range s.shelves {
		if found, ok := shelf.(S); ok {
			return found
		}
	}
	panic(fmt.Sprintf("ledger: no shelf of type %T", *new(S)))
}

// judge decides one command and applies what it decided. A command that was
// accepted before, in the past or earlier in this batch, gets its first answer.
func (s *State) judge(c Command) (Receipt, error) {
	if p, ok := s.past[c.ID]; ok {
		if p.digest != c.Digest {
			return Receipt{}, ErrIdempotencyMismatch.Because("the key was used for another request")
		}
		p.receipt.Replayed = true
		return p.receipt, nil
	}
	d, err := s.decide(c.Body)
	if err != nil {
		return Receipt{}, err
	}
	r := Receipt{Kind: d.Kind, Seq: s.seq, At: s.Now, Data: d.Data}
	if d.Kind == "" || c.DryRun {
		return r, nil
	}
	if err := s.apply(c, d); err != nil {
		return Receipt{}, err
	}
	r.Seq = s.seq
	s.past[c.ID] = pastEntry{c.Digest, r}
	return r, nil
}

// decide asks the command. A decision that panics is a bug of that command alone;
// it had only read.
func (s *State) decide(body Body) (d Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ledger: decision of %T panicked: %v\n%s", body, p, debug.Stack())
		}
	}()
	return body.Decide(s)
}

// apply makes an accepted decision an entry. It checks everything before it
// changes anything; a decision that breaks a rule of the ledger is a bug.
func (s *State) apply(c Command, d Decision) error {
	postings, err := s.post(d.Legs)
	if err == nil && len(d.Data) == 0 {
		err = errNoData
	}
	for _, row := range d.Rows {
		if c, ok := row.(Checked); ok && err == nil {
			err = c.Check(s)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.Kind, err)
	}
	e := Entry{
		Journal: s.Journal, Seq: s.seq + 1, ID: c.ID, Kind: d.Kind, At: s.Now,
		Principal: c.Principal, Digest: c.Digest, Data: d.Data, Postings: postings,
	}
	for _, p := range postings {
		s.credit(AccountKey{p.Account, p.Unit}, p.Amount, e.Seq)
	}
	e.Hash, s.buf = e.chain(s.hash, s.buf)
	s.seq, s.hash = e.Seq, e.Hash
	s.entries = append(s.entries, e)
	for _, row := range d.Rows {
		row.Keep(s)
	}
	return nil
}

// Broken rules of the ledger. They're bugs of a decision, never a caller's fault.
var (
	errUnbalanced = errors.New("ledger: postings don't sum to zero")
	errNoAccount  = errors.New("ledger: no such account in the chart")
	errControl    = errors.New("ledger: posting to a control account")
	errNegative   = errors.New("ledger: inventory below zero")
	errOverflow   = errors.New("ledger: balance overflow")
	errNoData     = errors.New("ledger: entry without data")
)

// post turns legs into postings with the balances after them, and checks them.
// It changes nothing.
func (s *State) post(legs []Leg) ([]Posting, error) {
	postings, err := merge(legs)
	if err != nil {
		return nil, err
	}
	for i := range postings {
		p := &postings[i]
		a := s.Account(p.Account, p.Unit)
		h, _ := classify(p.Account)
		switch {
		case a.Code == "":
			return nil, fmt.Errorf("%w: %s %s", errNoAccount, p.Account, p.Unit)
		case h.control && a.Control == "":
			return nil, fmt.Errorf("%w: %s", errControl, p.Account)
		}
		var ok bool
		if p.Balance, ok = add(a.Balance, p.Amount); !ok {
			return nil, fmt.Errorf("%w: %s", errOverflow, p.Account)
		}
		if h.kind == Inventory && !mayHave(p.Account, p.Balance) {
			return nil, fmt.Errorf("%w: %s %d", errNegative, p.Account, p.Balance)
		}
	}
	return postings, nil
}

// merge makes one posting of the legs of one account and unit, drops those that
// cancel out, and checks that every unit sums to zero.
func merge(legs []Leg) ([]Posting, error) {
	postings := make([]Posting, 0, len(legs))
	sums := make(map[Unit]Amount, 2)
next:
	for _, l := range legs {
		var ok bool
		if sums[l.Unit], ok = add(sums[l.Unit], l.Amount); !ok {
			return nil, fmt.Errorf("%w: %s", errOverflow, l.Unit)
		}
		for i := range postings {
			if p := &postings[i]; p.Account == l.Account && p.Unit == l.Unit {
				if p.Amount, ok = add(p.Amount, l.Amount); !ok {
					return nil, fmt.Errorf("%w: %s", errOverflow, l.Account)
				}
				continue next
			}
		}
		postings = append(postings, Posting{Account: l.Account, Unit: l.Unit, Amount: l.Amount})
	}
	for unit, sum := range sums {
		if sum != 0 {
			return nil, fmt.Errorf("%w: %s by %d", errUnbalanced, unit, sum)
		}
	}
	return slices.DeleteFunc(postings, func(p Posting) bool { return p.Amount == 0 }), nil
}

// credit adds an amount to an account and to its control account.
func (s *State) credit(key AccountKey, amount Amount, seq Seq) {
	a, ok := s.accounts[key]
	if !ok {
		account, _ := newAccount(key)
		a = &balance{Account: account, created: true}
		s.accounts[key] = a
	}
	a.Balance += amount
	a.Version = seq
	a.changed = true
	if a.Control != "" {
		s.credit(AccountKey{a.Control, key.Unit}, amount, seq)
	}
}

// add sums without overflow.
func add(a, b Amount) (Amount, bool) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, false
	}
	return a + b, true
}
