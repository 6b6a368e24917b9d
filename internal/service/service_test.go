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
	s, err := service.Start(ctx, config(db))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events.Create(ctx, "tester", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	release := lockJournal(t, db)

	const n = 5 // all must come before the first one has waited for too long
	statuses := make([]int, n)
	var clients sync.WaitGroup
	ask := func(i int) {
		clients.Go(func() { statuses[i] = hold(t, s.URL(), fmt.Sprint(i)) })
	}
	// The first one's batch waits for the lock; the others queue behind it.
	ask(0)
	awaitLockWait(t, db)
	for i := 1; i < n; i++ {
		ask(i)
	}
	until(t, func() bool { return s.Ledger.Waiting() == n-1 })

	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	until(t, func() bool {
		r, err := http.Get(s.URL() + "/healthz")
		if err == nil {
			r.Body.Close()
		}
		return err != nil
	})
	select {
	case err := <-closed:
		t.Fatalf("closed with %d requests under way: %v", n, err)
	default:
	}
	release()
	clients.Wait()
	for i, status := range statuses {
		if status != http.StatusCreated {
			t.Errorf("request %d was answered %d", i, status)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-s.Done(); err != nil {
		t.Error(err)
	}
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

// awaitLockWait waits until a session of the test's database waits for a lock.
func awaitLockWait(t *testing.T, db *pgtest.DB) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	until(t, func() bool {
		var waits bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
}

// until looks again and again at what can't be waited on.
func until(t *testing.T, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !there(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
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
