package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/export"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// books makes a small event: tickets that move, and money in units of 0, 2 and 3
// decimals; and gives its books.
func books(t *testing.T, format string) string {
	t.Helper()
	ctx := context.Background()
	db := pgtest.New(t)
	db.Except("authorizations_open") // the memo below stands in for an order's
	stores := pgtest.Stores(t, db, nil)
	must := func(_ ledger.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(stores.Events.Create(ctx, "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", Tiers: []buckets.TierSpec{
		{Tier: "ga", Quantity: 50, Price: buckets.Money{Amount: 5000, Currency: "USD"}},
		{Tier: "Row-1.b", Quantity: 5, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}))
	for i, customer := range []string{"ann", "bob@example.com", "c|d=e~f+g"} {
		must(stores.Holds.Place(ctx, "t", customer, "gig", holds.Request{Customer: customer, Items: []holds.Line{
			{Tier: "ga", Quantity: ledger.Amount(i + 1)}, {Tier: "Row-1.b", Quantity: 1}}}))
	}
	must(stores.Holds.Release(ctx, "t", "release", ledger.NewID(1, "t", "ann"), nil))
	for i, unit := range []ledger.Unit{"JPY", "USD", "KWD", "USD.AUTH"} {
		legs := []ledger.Leg{{Account: "bank:b", Unit: unit, Amount: 12345}, {Account: "equity", Unit: unit, Amount: -12345}}
		if unit == "USD.AUTH" {
			legs[0].Account, legs[1].Account = "auth:open", "auth:contra"
		}
		post := &ledger.Post{Description: "d", Legs: legs, Units: buckets.Unpostable}
		c, err := ledger.NewCommand(1, "t", fmt.Sprint("post", i), ledger.KindPosted, legs, post)
		if err != nil {
			t.Fatal(err)
		}
		must(stores.Ledger.Do(ctx, 1, c))
	}
	var out bytes.Buffer
	if err := export.Write(ctx, &out, db.URL(), "gig", format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// An independent program accepts the books as they are, and rejects them after
// any single posting has been changed by one.
func TestHledgerAcceptsTheBooksAndNoOthers(t *testing.T) {
	t.Parallel()
	text := books(t, "hledger")
	if out, err := hledger(t, text, "check", "-s"); err != nil {
		t.Fatalf("the books as they are: %v\n%s\n%s", err, out, text)
	}
	lines := strings.Split(text, "\n")
	posting := regexp.MustCompile(`^(    \S+  )(-?[0-9.]+)( .*)$`)
	changed := 0
	for i, line := range lines {
		m := posting.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		changed++
		tampered := append([]string{}, lines...)
		tampered[i] = m[1] + plusOne(t, m[2]) + m[3]
		if out, err := hledger(t, strings.Join(tampered, "\n"), "check", "-s"); err == nil {
			t.Errorf("accepted with line %d as %q: %s", i+1, tampered[i], out)
		}
	}
	if changed < 20 {
		t.Errorf("only %d postings were found in\n%s", changed, text)
	}
}

// hledger runs a command of it on books.
func hledger(t *testing.T, text string, args ...string) ([]byte, error) {
	t.Helper()
	program, err := exec.LookPath("hledger")
	if err != nil {
		t.Fatal("hledger isn't installed: apt-get install hledger")
	}
	file := filepath.Join(t.TempDir(), "books.journal")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, program, append(args, "-f", file)...).CombinedOutput()
}

// plusOne adds one to the last digit of a decimal.
func plusOne(t *testing.T, s string) string {
	t.Helper()
	digits := strings.Replace(s, ".", "", 1)
	var n int64
	if _, err := fmt.Sscan(digits, &n); err != nil {
		t.Fatal(err)
	}
	decimals := 0
	if i := strings.IndexByte(s, '.'); i >= 0 {
		decimals = len(s) - i - 1
	}
	out := fmt.Sprintf("%0*d", decimals+1, max(n+1, -(n+1)))
	if decimals > 0 {
		out = out[:len(out)-decimals] + "." + out[len(out)-decimals:]
	}
	if n+1 < 0 {
		out = "-" + out
	}
	return out
}

// The exported objects alone are enough to recompute the hash chain, by the
// layout in docs/architecture.md and without our code.
func TestTheChainCanBeRecomputedFromTheExport(t *testing.T) {
	t.Parallel()
	if n := recompute(t, books(t, "ndjson")); !maps.Equal(n, map[[2]uint64]int{{1, 0}: 9}) {
		t.Errorf("the entries by journal and lane are %v", n)
	}
}

// recompute checks the chains of exported objects, and counts those of each journal and
// lane.
func recompute(t *testing.T, text string) map[[2]uint64]int {
	t.Helper()
	previous := make(map[uint64][]byte)
	n := make(map[[2]uint64]int)
	for line := range strings.Lines(text) {
		var e struct {
			Journal, Lane, Seq uint64
			ID                 uuid.UUID
			Kind               string
			At                 time.Time
			Principal          string
			Digest, Hash       string
			Data               json.RawMessage
			Postings           []struct {
				Account, Unit   string
				Amount, Balance int64
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if previous[e.Journal] == nil {
			previous[e.Journal] = make([]byte, sha256.Size)
		}
		h := sha256.New()
		number := func(n uint64) { h.Write(binary.BigEndian.AppendUint64(nil, n)) }
		word := func(s string) { number(uint64(len(s))); h.Write([]byte(s)) }
		digest, _ := hex.DecodeString(e.Digest)
		h.Write(previous[e.Journal])
		h.Write([]byte{1})
		number(e.Journal)
		number(e.Seq)
		h.Write(e.ID[:])
		word(e.Kind)
		number(uint64(e.At.UnixMicro()))
		word(e.Principal)
		h.Write(digest)
		word(string(e.Data))
		number(uint64(len(e.Postings)))
		for _, p := range e.Postings {
			word(p.Account)
			word(p.Unit)
			number(uint64(p.Amount))
			number(uint64(p.Balance))
		}
		sum := h.Sum(nil)
		if hex.EncodeToString(sum) != e.Hash {
			t.Fatalf("journal %d entry %d: recomputed %x, recorded %s", e.Journal, e.Seq, sum, e.Hash)
		}
		previous[e.Journal] = sum
		n[[2]uint64{e.Journal, e.Lane}]++
	}
	return n
}

func TestWhatCantBeExported(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if err := export.Write(context.Background(), &bytes.Buffer{}, db.URL(), "gig", "xls"); err == nil {
		t.Error("an unknown format was accepted")
	}
	if err := export.Write(context.Background(), &bytes.Buffer{}, db.URL(), "gig", "ndjson"); err == nil {
		t.Error("an unknown event was exported")
	}
}
