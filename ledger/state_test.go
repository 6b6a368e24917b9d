package ledger

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// body is a command with a fixed decision.
type body struct {
	legs []Leg
	err  error
}

func (b body) Accounts() []string { return nil }

func (b body) Decide(*State) (Decision, error) {
	return Decision{Kind: "test", Legs: b.legs, Data: json.RawMessage(`{}`)}, b.err
}

func command(t testing.TB, key string, b body) Command {
	t.Helper()
	c, err := NewCommand(7, "tester", key, "test", b.legs, b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestBrokenDecisionsAreRefusedAndLeaveNothing(t *testing.T) {
	for name, c := range map[string]struct {
		legs []Leg
		want error
	}{
		"unbalanced":         {[]Leg{{"bank:b", "USD", 1}, {"equity", "USD", -2}}, errUnbalanced},
		"unbalanced unit":    {[]Leg{{"bank:b", "USD", 1}, {"equity", "EUR", -1}}, errUnbalanced},
		"unknown account":    {[]Leg{{"pocket", "USD", 1}, {"equity", "USD", -1}}, errNoAccount},
		"ticket in a bank":   {[]Leg{{"bank:b", "ga", 1}, {"capacity", "ga", -1}}, errNoAccount},
		"money as inventory": {[]Leg{{"available", "USD", 1}, {"capacity", "USD", -1}}, errNoAccount},
		"control account":    {[]Leg{{"held", "ga", 1}, {"capacity", "ga", -1}}, errControl},
		"below zero":         {[]Leg{{"available", "ga", -1}, {"held:c", "ga", 1}}, errNegative},
		"positive capacity":  {[]Leg{{"capacity", "ga", 1}, {"available", "ga", -1}}, errNegative},
		"sums that wrap around": {[]Leg{
			{"bank:a", "USD", math.MaxInt64}, {"bank:b", "USD", math.MaxInt64}, {"bank:c", "USD", 2}}, errOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory(7)
			_, errs := m.Do(noon, command(t, "k", body{legs: c.legs}))
			if !errors.Is(errs[0], c.want) {
				t.Errorf("got %v, want %v", errs[0], c.want)
			}
			if len(m.Entries()) != 0 || len(m.state.accounts) != 0 || m.state.seq != 0 {
				t.Errorf("the refused decision left something behind: %+v", m.state)
			}
		})
	}
}

func TestAPanickingDecisionFailsAlone(t *testing.T) {
	m := NewMemory(7)
	good := body{legs: []Leg{{"bank:b", "USD", 1}, {"equity", "USD", -1}}}
	_, errs := m.Do(noon, Command{ID: NewID(7, "bad"), Body: nil}, command(t, "good", good))
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "panicked") {
		t.Errorf("the broken command: %v", errs[0])
	}
	if errs[1] != nil || len(m.Entries()) != 1 {
		t.Errorf("the good one: %v, %d entries", errs[1], len(m.Entries()))
	}
}

func TestARepeatGetsTheFirstAnswer(t *testing.T) {
	m := NewMemory(7)
	pay := body{legs: []Leg{{"bank:b", "USD", 5}, {"equity", "USD", -5}}}
	other := body{legs: []Leg{{"bank:b", "USD", 6}, {"equity", "USD", -6}}}
	first, errs := m.Do(noon, command(t, "k", pay))
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	again, errs := m.Do(noon.Add(time.Hour), command(t, "k", pay), command(t, "k", other), command(t, "k2", pay))
	if errs[0] != nil || !again[0].Replayed || again[0].Seq != first[0].Seq || !again[0].At.Equal(noon) {
		t.Errorf("repeat: %+v %v", again[0], errs[0])
	}
	if !errors.Is(errs[1], ErrIdempotencyMismatch) {
		t.Errorf("the key with other content: %v", errs[1])
	}
	if errs[2] != nil || m.Balance("bank:b", "USD") != 10 {
		t.Errorf("another key is another command: %v, balance %d", errs[2], m.Balance("bank:b", "USD"))
	}
}

// Whatever is asked, what the state keeps adds up, and every hash chains.
func TestTheStateAlwaysAddsUp(t *testing.T) {
	codes := []string{"available", "held:a", "held:b", "sold:a", "blocked", "capacity"}
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(7)
		sums := map[AccountKey]Amount{}
		supply := Command{ID: NewID(7, "supply"), Body: body{legs: []Leg{{"capacity", "ga", -100}, {"available", "ga", 100}}}}
		m.Do(noon, supply)
		for i := range rapid.IntRange(1, 30).Draw(t, "commands") {
			n := Amount(rapid.IntRange(-40, 40).Draw(t, "n"))
			from, to := rapid.SampledFrom(codes).Draw(t, "from"), rapid.SampledFrom(codes).Draw(t, "to")
			m.Do(noon, Command{ID: NewID(7, string(rune(i))), Body: body{legs: []Leg{{from, "ga", -n}, {to, "ga", n}}}})
		}
		var previous Hash
		for i, e := range m.Entries() {
			if e.Seq != Seq(i+1) {
				t.Fatalf("entry %d has seq %d", i, e.Seq)
			}
			if want, _ := e.chain(previous, nil); want != e.Hash {
				t.Fatalf("entry %d: its hash doesn't chain", e.Seq)
			}
			previous = e.Hash
			for _, p := range e.Postings {
				key := AccountKey{p.Account, p.Unit}
				if sums[key] += p.Amount; sums[key] != p.Balance {
					t.Fatalf("entry %d: %s has %d, postings sum to %d", e.Seq, p.Account, p.Balance, sums[key])
				}
			}
		}
		var total, held Amount
		for key, a := range m.state.accounts {
			if a.Type == Inventory && key.Code != Capacity && a.Balance < 0 {
				t.Fatalf("%s is %d", key.Code, a.Balance)
			}
			if a.Control == "" {
				total += a.Balance
			}
			if a.Control == Held {
				held += a.Balance
			}
		}
		if total != 0 || held != m.Balance(Held, "ga") {
			t.Fatalf("tickets sum to %d; held is %d, below it %d", total, m.Balance(Held, "ga"), held)
		}
	})
}

func TestIDsTellTheirJournalAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		journal := JournalID(rapid.Uint32().Draw(t, "journal"))
		names := rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "names")
		id := NewID(journal, names...)
		if got, ok := JournalOf(id); !ok || got != journal || id != NewID(journal, names...) {
			t.Fatalf("%s: journal %d %v", id, got, ok)
		}
	})
	if NewID(1, "ab", "c") == NewID(1, "a", "bc") {
		t.Error("names run into each other")
	}
}

func TestAccountsOfTheChart(t *testing.T) {
	for _, code := range []string{"", ":", "held:", "held:a:b", "capacity:x", "provider", "Held:a", "held:a b", "organiser:o:x:y",
		"held:" + strings.Repeat("x", maxCode)} {
		if _, ok := classify(code); ok {
			t.Errorf("%q is in the chart", code)
		}
	}
	for code, want := range map[string]Type{"fees:platform": Income, "fees:provider:sim": Expense, "organiser:o": Liability,
		"organiser:o:dispute-hold": Liability, "held:a@b.c": Inventory, "auth:open": Memo, "equity": Equity} {
		if h, ok := classify(code); !ok || h.kind != want {
			t.Errorf("%s is %q, want %q", code, h.kind, want)
		}
	}
}
