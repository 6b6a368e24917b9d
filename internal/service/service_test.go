package service_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func config(db *pgtest.DB) service.Config {
	c := service.Default()
	c.DatabaseURL, c.Listen, c.LoopbackAdmin = db.ServiceURL(), "127.0.0.1:0", true
	return c
}

// A stop answers everything that was accepted, and takes nothing new meanwhile.
func TestCloseFinishesWhatItAccepted(t *testing.T) {
	db := pgtest.New(t)
	ctx := context.Background()
	c := config(db)
	c.DrainTimeout = 10 * time.Minute
	unlessLate(t, batchPatience, func(round int) []string {
		s, err := service.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Events.Create(ctx, "tester", "event", gig(1000)); err != nil {
			t.Fatal(err)
		}
		wrong := closeWithHolds(t, db, s, round)
		if err := <-s.Done(); err != nil {
			t.Error(err)
		}
		return wrong
	})
}

// batchPatience is how long a batch waits for its journal: who is in one that has waited for
// longer is refused, and rightly.
const batchPatience = 5 * time.Second

// unlessLate does something that may go wrong if it takes as long as late, and then does it
// again. What goes wrong sooner, or always, fails the test.
func unlessLate(t *testing.T, late time.Duration, do func(round int) (wrong []string)) {
	t.Helper()
	first := time.Now()
	for round := 0; ; round++ {
		began := time.Now()
		wrong := do(round)
		if len(wrong) == 0 {
			return
		}
		if time.Since(began) < late || time.Since(first) > time.Minute {
			t.Fatalf("after %s: %q", time.Since(began), wrong)
		}
	}
}

// closeWithHolds closes a service that holds come to while their journal is locked, and gives
// what went wrong.
func closeWithHolds(t *testing.T, db *pgtest.DB, s *service.Service, round int) (wrong []string) {
	t.Helper()
	ctx := context.Background()
	release := lockJournal(t, db)
	const n = 5
	statuses := make([]int, n)
	answers := make(chan struct{}, n)
	var clients sync.WaitGroup
	ask := func(i int) {
		clients.Go(func() { statuses[i] = hold(t, s.URL(), fmt.Sprint(round, "-", i)); answers <- struct{}{} })
	}
	early := func() bool { return len(answers) > 0 }
	// The first one's batch waits for the lock; the others queue behind it.
	ask(0)
	awaitLockWait(t, db, early)
	for i := 1; i < n; i++ {
		ask(i)
	}
	pgtest.Until(t, "the others wait", func() bool { return early() || s.Ledger.Waiting() == n-1 })
	if early() {
		release()
		clients.Wait()
		return []string{"a request was answered while its journal was locked", fmt.Sprint(s.Close(ctx))}
	}

	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	pgtest.Until(t, "nothing new is taken", func() bool {
		r, err := http.Get(s.URL() + "/healthz")
		if err == nil {
			r.Body.Close()
		}
		return err != nil
	})
	select {
	case err := <-closed:
		wrong = append(wrong, fmt.Sprintf("closed with %d requests under way: %v", n, err))
		closed <- nil
	default:
	}
	release()
	clients.Wait()
	for i, status := range statuses {
		if status != http.StatusCreated {
			wrong = append(wrong, fmt.Sprintf("request %d was answered %d", i, status))
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	return wrong
}

// gig is an event.
func gig(quantity ledger.Amount) buckets.Spec {
	return buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: quantity, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}
}

// lockJournal takes the lock of the first event's journal, as a batch of another
// process does, until the returned func is called.
func lockJournal(t *testing.T, db *pgtest.DB) (release func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	for _, sql := range []string{`BEGIN`, `SELECT FROM journals WHERE journal_id = 1 FOR UPDATE`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.Exec(ctx, `ROLLBACK`); err != nil {
			t.Error(err)
		}
	}
}

// awaitLockWait waits until a session of the test's database waits for a lock, or it's too
// late for that.
func awaitLockWait(t *testing.T, db *pgtest.DB, late func() bool) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	pgtest.Until(t, "somebody waits for a lock", func() bool {
		var waits bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return late() || err == nil && waits
	})
}

func hold(t *testing.T, url, key string) int {
	r, err := http.NewRequest(http.MethodPost, url+"/v1/events/gig/holds",
		strings.NewReader(fmt.Sprintf(`{"customer":"c%s","items":[{"tier":"ga","quantity":1}]}`, key)))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestAWrongConfigurationNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*service.Config){
		"database-url: required": func(c *service.Config) { c.DatabaseURL = "" },
		"database-url: not":      func(c *service.Config) { c.DatabaseURL = "postgres://u:secret@h:port/db" },
		"tls-cert, tls-key":      func(c *service.Config) { c.TLSCert = "cert.pem" },
		"commit-conns":           func(c *service.Config) { c.CommitConns = 0 },
		"read-conns":             func(c *service.Config) { c.ReadConns = 501 },
		"sweep-every":            func(c *service.Config) { c.SweepEvery = time.Nanosecond },
		"drain-timeout":          func(c *service.Config) { c.DrainTimeout = time.Hour },
	} {
		c := service.Default()
		c.DatabaseURL = "postgres:///x"
		spoil(&c)
		_, err := service.Start(context.Background(), c)
		if err == nil || !strings.HasPrefix(err.Error(), field) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
