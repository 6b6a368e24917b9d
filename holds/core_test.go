package holds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

const testJournal = ledger.JournalID(9)

// journal is an event in memory: the same decisions, no database.
type journal struct {
	*ledger.Memory
	shelf *shelf
	now   time.Time
	ids   map[string]uuid.UUID // holds by the key that placed them
	last  int                  // entries shown so far
}

func openJournal(t interface {
	Helper()
	Fatal(...any)
}, spec buckets.Spec) *journal {
	t.Helper()
	j := &journal{shelf: Shelves()().(*shelf), ids: map[string]uuid.UUID{}, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	j.Memory = ledger.NewMemory(testJournal, buckets.NewShelf(), seats.NewCharts().Shelf(), j.shelf)
	c, err := buckets.OpenCommand(testJournal, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := j.Memory.Do(j.now, c); errs[0] != nil {
		t.Fatal(errs[0])
	}
	j.last = len(j.Entries())
	return j
}

// do runs a command as a batch would: with the holds that are due or next.
func (j *journal) do(c ledger.Command) (ledger.Receipt, error) {
	j.shelf.ahead = nil
	for _, h := range j.shelf.holds {
		if h.Status == Held {
			j.shelf.ahead = append(j.shelf.ahead, h)
		}
	}
	slices.SortFunc(j.shelf.ahead, func(a, b *Hold) int {
		if c := a.ExpiresAt.Compare(b.ExpiresAt); c != 0 {
			return c
		}
		return slices.Compare(a.ID[:], b.ID[:])
	})
	receipts, errs := j.Memory.Do(j.now, c)
	return receipts[0], errs[0]
}

func (j *journal) place(key, customer string, lines ...Line) (ledger.Receipt, error) {
	body := &place{route: &buckets.Route{}, request: Request{Customer: customer, Items: lines}}
	c, err := ledger.NewCommand(testJournal, "tester", key, KindPlaced, body.request, body)
	if err != nil {
		panic(err)
	}
	body.id = c.ID
	r, err := j.do(c)
	if err == nil {
		j.ids[key] = c.ID
	}
	return r, err
}

func (j *journal) release(key, hold string) (ledger.Receipt, error) {
	id := j.ids[hold]
	c, err := ledger.NewCommand(testJournal, "tester", key, KindReleased, id, &release{holdID: id})
	if err != nil {
		panic(err)
	}
	return j.do(c)
}

// show gives the entries since it was last called, as columns.
func (j *journal) show(out *strings.Builder) {
	for _, e := range j.Entries()[j.last:] {
		for i, p := range e.Postings {
			kind := ""
			if i == 0 {
				kind = fmt.Sprintf("%d %s", e.Seq, e.Kind)
			}
			fmt.Fprintf(out, "%-18s %-12s %-4s %+4d = %3d\n", kind, p.Account, p.Unit, p.Amount, p.Balance)
		}
	}
	j.last = len(j.Entries())
}

// TestScripts runs the scripts in testdata: commands, and the postings that they
// make or the reason for their refusal.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var j *journal
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			var receipt ledger.Receipt
			var err error
			switch d.Cmd {
			case "event":
				j = openJournal(t, scriptEvent(t, d))
				return ""
			case "wait":
				var span string
				d.ScanArgs(t, "for", &span)
				pause, _ := time.ParseDuration(span)
				j.now = j.now.Add(pause)
				return ""
			case "place":
				var key, customer string
				d.ScanArgs(t, "key", &key)
				d.ScanArgs(t, "customer", &customer)
				receipt, err = j.place(key, customer, scriptLines(t, d)...)
			case "release":
				var key, hold string
				d.ScanArgs(t, "key", &key)
				d.ScanArgs(t, "hold", &hold)
				receipt, err = j.release(key, hold)
			case "chart":
				receipt, err = j.load(scriptChart(t, d))
			case "block", "unblock":
				receipt, err = j.setAside(d.Cmd == "block", d.CmdArgs[0].Vals)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			j.show(&out)
			showSeats(&out, receipt)
			if f := fault.As(err); f != nil {
				fmt.Fprintf(&out, "%s: %s\n", f.Code, f.Detail)
				for _, field := range f.Fields {
					switch field.Name {
					case "retry_at":
						fmt.Fprintf(&out, "retry at %v\n", field.Value)
					case "seats", "largest_block":
						text, _ := json.Marshal(field.Value)
						fmt.Fprintf(&out, "%s: %s\n", field.Name, text)
					}
				}
			} else if err != nil {
				return err.Error()
			} else if receipt.Replayed {
				out.WriteString("replayed\n")
			} else if receipt.Kind == "" {
				out.WriteString("nothing to do\n")
			}
			return out.String()
		})
	})
}

// scriptEvent reads: event hold=5m limit=4 tiers=(ga:10@5000, vip:2@9000/1, stalls:seated@4000)
func scriptEvent(t *testing.T, d *datadriven.TestData) buckets.Spec {
	spec := buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD"}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "hold":
			span, _ := time.ParseDuration(arg.Vals[0])
			spec.HoldSeconds = int(span / time.Second)
		case "limit":
			spec.LimitPerCustomer = new(number(arg.Vals[0]))
		case "tiers":
			for _, v := range arg.Vals {
				name, rest, _ := strings.Cut(v, ":")
				quantity, rest, _ := strings.Cut(rest, "@")
				price, limit, limited := strings.Cut(rest, "/")
				tier := buckets.TierSpec{
					Tier: ledger.Unit(name), Seated: quantity == "seated",
					Price: buckets.Money{Amount: ledger.Amount(number(price)), Currency: "USD"},
				}
				if !tier.Seated {
					tier.Quantity = ledger.Amount(number(quantity))
				}
				if limited {
					tier.LimitPerCustomer = new(number(limit))
				}
				spec.Tiers = append(spec.Tiers, tier)
			}
		}
	}
	return spec
}

// Whatever customers do and whenever, no ticket is sold twice or lost, and what
// the accounts hold is what the open holds claim.
func TestTicketsAreConserved(t *testing.T) {
	tiers := []ledger.Unit{"ga", "vip"}
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.Int64Range(1, 12).Draw(r, "limit")
		capacity := map[ledger.Unit]ledger.Amount{}
		spec := buckets.Spec{Event: "gig", Name: "Gig", Currency: "JPY", HoldSeconds: 60, LimitPerCustomer: &limit}
		for _, tier := range tiers {
			capacity[tier] = ledger.Amount(rapid.IntRange(1, 20).Draw(r, string(tier)))
			spec.Tiers = append(spec.Tiers, buckets.TierSpec{Tier: tier, Quantity: capacity[tier],
				Price: buckets.Money{Amount: 100, Currency: "JPY"}})
		}
		j := openJournal(t, spec)
		var keys []string
		steps := rapid.IntRange(1, 60).Draw(r, "steps")
		for i := range steps {
			j.now = j.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(r, "wait")) * time.Second)
			if len(keys) > 0 && rapid.IntRange(0, 3).Draw(r, "what") == 0 {
				if _, err := j.release(fmt.Sprint("r", i), rapid.SampledFrom(keys).Draw(r, "hold")); err != nil {
					r.Fatalf("release: %v", err)
				}
			} else {
				var lines []Line
				for range rapid.IntRange(1, 3).Draw(r, "lines") {
					lines = append(lines, Line{Tier: rapid.SampledFrom(tiers).Draw(r, "tier"),
						Quantity: ledger.Amount(rapid.IntRange(1, 6).Draw(r, "quantity"))})
				}
				key := fmt.Sprint("p", i)
				_, err := j.place(key, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "customer"), lines...)
				if err == nil {
					keys = append(keys, key)
				} else if fault.As(err) == nil {
					r.Fatalf("place: %v", err)
				}
			}
			j.checkConserved(r, tiers, capacity, limit)
		}
	})
}

func (j *journal) checkConserved(t *rapid.T, tiers []ledger.Unit, capacity map[ledger.Unit]ledger.Amount, limit int64) {
	claims := map[ledger.AccountKey]ledger.Amount{}
	customers := map[string]ledger.Amount{}
	for _, h := range j.shelf.holds {
		if h.Status != Held {
			continue
		}
		for _, i := range h.Items {
			claims[ledger.AccountKey{Code: ledger.HeldBy(h.Customer), Unit: i.Tier}] += i.Quantity
			customers[h.Customer] += i.Quantity
		}
	}
	for customer, n := range customers {
		if n > ledger.Amount(limit) {
			t.Fatalf("%s holds %d, the limit is %d", customer, n, limit)
		}
	}
	for _, tier := range tiers {
		if free := j.Balance(ledger.Available, tier); free < 0 || free+j.Balance(ledger.Held, tier) != capacity[tier] {
			t.Fatalf("%s: %d available and %d held of %d", tier, free, j.Balance(ledger.Held, tier), capacity[tier])
		}
		for _, customer := range []string{"a", "b", "c"} {
			key := ledger.AccountKey{Code: ledger.HeldBy(customer), Unit: tier}
			if got := j.Balance(key.Code, tier); got != claims[key] {
				t.Fatalf("%s %s: account has %d, holds claim %d", key.Code, tier, got, claims[key])
			}
		}
	}
}

// An old expiry never touches what came after it (A7): it matches id, state and
// deadline, and has one id for good.
func TestALateExpiryChangesNothing(t *testing.T) {
	j := openJournal(t, buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", HoldSeconds: 60,
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 5, Price: buckets.Money{Amount: 1, Currency: "USD"}}}})
	if _, err := j.place("k", "a", Line{Tier: "ga", Quantity: 5}); err != nil {
		t.Fatal(err)
	}
	h := *j.shelf.holds[j.ids["k"]]
	entries := len(j.Entries())
	if _, err := j.do(expiry(&h)); err != nil || len(j.Entries()) != entries {
		t.Errorf("an expiry before its time: %v, %d entries", err, len(j.Entries())-entries)
	}
	if _, err := j.release("r", "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.place("k2", "b", Line{Tier: "ga", Quantity: 5}); err != nil {
		t.Fatal(err)
	}
	j.now, j.shelf.ahead = h.ExpiresAt, nil
	entries = len(j.Entries())
	for range 2 {
		if _, errs := j.Memory.Do(j.now, expiry(&h)); errs[0] != nil {
			t.Errorf("a late expiry: %v", errs[0])
		}
	}
	if got := j.Balance(ledger.HeldBy("b"), "ga"); got != 5 || len(j.Entries()) != entries {
		t.Errorf("b holds %d, want 5; %d new entries", got, len(j.Entries())-entries)
	}
}
