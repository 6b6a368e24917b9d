package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// postOffice serves an event whose entries are dead letters: one that moved money, and those
// of some holds.
type postOffice struct {
	url     string
	keys    map[string]string // files with keys, by principal
	letters *outbox.Letters
	db      *pgtest.DB
	broken  bool // effects fail
}

func openPostOffice(t *testing.T, plain int) *postOffice {
	t.Helper()
	ctx := t.Context()
	o := &postOffice{db: pgtest.Private(t, nil), keys: make(map[string]string)}
	lines := ""
	for name, role := range map[string]string{"olga": "operator", "finn": "finance", "alan": "auditor"} {
		key, line, err := httpapi.NewKey(name, role)
		if err != nil {
			t.Fatal(err)
		}
		o.keys[name] = writeTemp(t, name, key)
		lines += line + "\n"
	}
	keys, err := httpapi.LoadKeys(writeTemp(t, "keys", lines))
	if err != nil {
		t.Fatal(err)
	}
	s := pgtest.Stores(t, o.db, nil)
	conn, err := pgx.Connect(ctx, o.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	pool, err := pgxpool.New(ctx, o.db.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.letters = outbox.NewLetters(pool, pool, map[string]outbox.Redo{
		"tickets": func(context.Context, pgx.Tx, outbox.DeadLetter, outbox.Event) error {
			if o.broken {
				return io.ErrShortWrite
			}
			return nil
		},
	}, nil)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Ledger: s.Ledger, Reader: s.Reader, Events: s.Events, Holds: s.Holds,
		Letters: o.letters, Keys: keys}))
	t.Cleanup(server.Close)
	o.url = server.URL
	if _, err := s.Events.Create(ctx, "t", "event", buckets.Spec{Event: "hall", Name: "Hall", Currency: "USD", Tiers: []buckets.TierSpec{
		{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	var receipts []ledger.Receipt
	for n := range plain {
		receipt, err := s.Holds.Place(ctx, "t", fmt.Sprint(n), "hall", holds.Request{Customer: "c", Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, receipt)
	}
	post := &ledger.Post{Description: "a payment", Units: buckets.Unpostable, Legs: []ledger.Leg{
		{Account: "bank:b", Unit: "USD", Amount: 5}, {Account: "organiser:o", Unit: "USD", Amount: -5}}}
	command, err := ledger.NewCommand(1, "t", "pay", ledger.KindPosted, "x", post)
	if err != nil {
		t.Fatal(err)
	}
	paid, err := s.Ledger.Do(ctx, 1, command)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(receipts, paid) {
		bury(t, conn, r)
	}
	return o
}

// bury makes an entry of the first event a dead letter.
func bury(t *testing.T, conn *pgx.Conn, r ledger.Receipt) {
	t.Helper()
	ctx := t.Context()
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		e := outbox.Event{Journal: 1, Seq: r.Seq}
		err := tx.QueryRow(ctx, `SELECT id, kind, at, data FROM entries WHERE journal_id = 1 AND seq = $1`, e.Seq).Scan(&e.ID, &e.Kind, &e.At, &e.Data)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO inbox (consumer, journal_id, seq) VALUES ('tickets', 1, $1)
				ON CONFLICT (consumer, journal_id) DO UPDATE SET seq = excluded.seq`, e.Seq)
		}
		if err != nil {
			return err
		}
		return outbox.Bury(ctx, tx, outbox.Letter{Consumer: "tickets", Event: e, Reason: "out of paper\nin tray 2", Attempts: outbox.MaxAttempts})
	}); err != nil {
		t.Fatal(err)
	}
}

// as runs a dlq command with somebody's key.
func (o *postOffice) as(t *testing.T, who, line string) (code int, stdout, stderr string) {
	t.Helper()
	args := append([]string{"dlq"}, words(line)...)
	return runHere(t, append(args, "--url", o.url, "--key-file", o.keys[who])...)
}

// tells wants a command to work, and to print texts.
func (o *postOffice) tells(t *testing.T, who, line string, texts ...string) string {
	t.Helper()
	code, stdout, stderr := o.as(t, who, line)
	if code != exitOK {
		t.Fatalf("%s: exit code %d: %s%s", line, code, stdout, stderr)
	}
	if !strings.HasPrefix(line, "show ") { // a payload is as it came
		fits(t, stdout)
	}
	for _, text := range texts {
		if !strings.Contains(stdout, text) {
			t.Errorf("%s doesn't say %q: %s", line, text, stdout)
		}
	}
	return stdout
}

// fails wants a command to end with a code, and with a text in its one line of complaint.
func (o *postOffice) fails(t *testing.T, who, line string, code int, text string) {
	t.Helper()
	got, stdout, stderr := o.as(t, who, line)
	if got != code || !strings.Contains(stderr, text) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%s: exit code %d: %s%s", line, got, stdout, stderr)
	}
}

var anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// An operator's day: what died, what would be done, a second person, and the outcome.
func TestDLQ(t *testing.T) {
	t.Parallel()
	o := openPostOffice(t, 3)
	list := o.tells(t, "alan", "list", "dead       tickets", "entry.posted, entry 5 of journal 1 (event hall), money, 8 attempts: out of paper …")
	if n := len(anID.FindAllString(list, -1)); n != 4 {
		t.Errorf("%d letters: %s", n, list)
	}
	id := anID.FindString(list)
	o.tells(t, "alan", "show "+id, "in tray 2\n", `"kind":"entry.posted"`)
	o.tells(t, "alan", "list --event hall --kind hold.placed --limit 1", "there are older ones")
	o.tells(t, "alan", "list --consumer webhooks", "no dead letters")
	o.tells(t, "alan", "status", "no replays")

	all := `replay --all --reason "printer mended"`
	o.tells(t, "olga", all, "dry run, nothing was changed: 4 letters would be replayed, 10 a second, in about 1s, the first one",
		"         3  tickets    hold.placed\n", "1 about money: another person of finance must approve", "add --yes to do it\n")
	o.fails(t, "alan", all, exitFailed, "403 forbidden")
	asked := o.tells(t, "olga", all+" --yes", "awaiting approval", "0 of 4 done; of all that were dead", "asked by olga: printer mended", "tierledger dlq approve ")
	replay := anID.FindString(asked)
	o.fails(t, "olga", "approve "+replay, exitFailed, "403 forbidden")
	o.fails(t, "olga", all, exitFailed, "409 nothing_chosen")
	o.tells(t, "alan", "list", "taken      tickets")
	o.tells(t, "finn", "reject "+replay+` --reason "not yet"`, "rejected", "4 let go of", "rejected by finn: not yet")
	replay = anID.FindString(o.tells(t, "olga", all+" --yes --follow", "awaiting approval"))
	o.tells(t, "finn", "approve "+replay, "running")
	o.tells(t, "olga", "stop "+replay+` --reason "too hot"`, "stopped by olga: too hot", "tierledger dlq resume "+replay)
	o.fails(t, "olga", "stop "+replay+` --reason "too hot"`, exitFailed, "409 wrong_replay_status: it's stopped; only one that's running can be stopped; `tierledger dlq status`")
	o.tells(t, "olga", "resume "+replay, "running")
	o.work(t)
	o.tells(t, "olga", "status "+replay+" --follow --every 10ms", "done", "4 of 4 done", "approved by finn", "stopped by olga: too hot", "done by system")
	o.tells(t, "alan", "status --status done", replay)
	o.tells(t, "alan", "show "+id, "replayed ", "by replay "+replay)
	o.tells(t, "alan", "list", "no dead letters")
	o.tells(t, "alan", "list --status all --of-replay "+replay, "replayed ")
	o.fails(t, "olga", `discard `+id+` --reason x --yes`, exitFailed, "409 letter_ended")
	o.fails(t, "alan", "show "+uuid.NewString(), exitFailed, "404 dead_letter_not_found")
	o.fails(t, "alan", "status none", exitFailed, "404 replay_not_found")
}

// work does what's due of replays until the test ends, as a service does.
func (o *postOffice) work(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := o.letters.Work(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			<-ticker.C
		}
	})
	t.Cleanup(func() { stop(); working.Wait() })
}

// Following tells by its exit code whether all went well.
func TestDLQFollows(t *testing.T) {
	t.Parallel()
	o := openPostOffice(t, 2)
	o.broken = true
	o.work(t)
	line := `replay --kind hold.placed --reason x --rate 1000 --yes --follow --every 10ms`
	code, stdout, stderr := o.as(t, "olga", line)
	if code != exitFailed || !strings.Contains(stdout, "stopped") || !strings.Contains(stdout, "died again: short write") || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	stopped := anID.FindString(stdout)
	code, stdout, stderr = o.as(t, "olga", `replay --of-replay `+stopped+` --reason x --canary=false --yes --follow --every 10ms`)
	if code != exitFailed || !strings.Contains(stdout, "0 of 2 done, 2 died again") || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	o.tells(t, "olga", "status "+stopped, "taken over by olga")
	o.tells(t, "olga", `discard --kind hold.placed --reason x --rate 1000 --yes --follow --every 10ms`, "discard  done", "2 of 2 done")
}

// A wrong command line calls nobody.
func TestDLQUsage(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was called", r.Method, r.URL)
	}))
	defer service.Close()
	for line, says := range map[string]string{
		"replay --all":                             "reason",
		"replay --reason x":                        "which letters?",
		"discard --reason x":                       "which letters?",
		"replay a --consumer tickets --reason x":   "not both",
		"replay a --all --reason x":                "not both",
		"replay --all --kind k --reason x":         "--all is for all of them",
		"replay --all --reason x --rate 0":         "--rate must be 1 to 1000",
		"replay --all --reason x --rate 1001":      "--rate must be 1 to 1000",
		"replay --all --reason x --follow":         "--follow is for what's done",
		"replay --all --reason x --yes --every 0s": "--every must be above 0",
		"replay --since now --reason x":            `--since: "now" isn't a time`,
		"list --until 2027":                        `--until: "2027" isn't a time`,
		"list --journal x":                         `--journal: "x" isn't a journal's number`,
		"list --journal 1 --event hall":            "event",
		"list more":                                "unknown command",
		"show":                                     "arg",
		"status --follow":                          "--follow needs a replay's id",
		"status a --status done":                   "--status is for the list",
		"status a --every 0s":                      "--every must be above 0",
		"reject a":                                 "reason",
		"stop a":                                   "reason",
		"approve":                                  "arg",
		"resume a b":                               "arg",
		"replay --all --reason x --yes --idempotency-key=": "--idempotency-key must not be empty",
	} {
		code, stdout, stderr := runHere(t, append([]string{"dlq"}, append(words(line), "--url", service.URL)...)...)
		if code != exitUsage || !strings.Contains(stderr, says) || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d and one line with %q: %s%s", line, code, exitUsage, says, stdout, stderr)
		}
	}
}

// What goes over the line, and that --json is what the API answers.
func TestDLQSends(t *testing.T) {
	t.Parallel()
	const answer = `{"data":[],"status":"done","answer":"<as it came>"}`
	var mu sync.Mutex
	sent := ""
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // one that's cut short shows
		mu.Lock()
		defer mu.Unlock()
		sent = strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), body))
		_, _ = io.WriteString(w, answer)
	}))
	defer service.Close()
	for line, want := range map[string]string{
		"list": "GET /v1/dead-letters?limit=20&status=dead",
		`list --status all --consumer a --kind b --event c --target d --error "e f" --of-replay g --limit 7 --cursor h`: "GET /v1/dead-letters?" +
			"consumer=a&cursor=h&event=c&kind=b&limit=7&reason=e+f&replay_id=g&target=d",
		"list --journal 7 --since 2027-03-01T10:00:00Z --until 2027-03-01T10:00:00+01:00": "GET /v1/dead-letters?" +
			"journal=7&limit=20&since=2027-03-01T10%3A00%3A00Z&status=dead&until=2027-03-01T10%3A00%3A00%2B01%3A00",
		"show a/b":                       "GET /v1/dead-letters/a%2Fb",
		"status":                         "GET /v1/dead-letters/replays?limit=20",
		"status --status done --limit 3": "GET /v1/dead-letters/replays?limit=3&status=done",
		"status a":                       "GET /v1/dead-letters/replays/a",
		"replay --all --reason x":        `POST /v1/dead-letters/replays?dry_run=true  {"action":"replay","filter":{},"rate":10,"canary":true,"reason":"x"}`,
		"discard a b --reason x --yes":   `POST /v1/dead-letters/replays k {"action":"discard","letters":["a","b"],"rate":10,"canary":true,"reason":"x"}`,
		"replay --journal 7 --canary=false --rate 3 --error z --reason x --yes": `POST /v1/dead-letters/replays k ` +
			`{"action":"replay","filter":{"journal":7,"reason":"z"},"rate":3,"canary":false,"reason":"x"}`,
		"approve a":            "POST /v1/dead-letters/replays/a/approve k {}",
		"reject a --reason no": `POST /v1/dead-letters/replays/a/reject k {"reason":"no"}`,
		"stop a --reason no":   `POST /v1/dead-letters/replays/a/stop k {"reason":"no"}`,
		"resume a":             "POST /v1/dead-letters/replays/a/resume k {}",
	} {
		args := append(words(line), "--url", service.URL, "--json")
		if strings.HasPrefix(want, "POST") {
			args = append(args, "--idempotency-key", "k")
		}
		code, stdout, stderr := runHere(t, append([]string{"dlq"}, args...)...)
		if code != exitOK || stdout != answer+"\n" || sent != want {
			t.Errorf("%s: exit code %d: %s%s\nsent %s\nwant %s", line, code, stdout, stderr, sent, want)
		}
	}
}
