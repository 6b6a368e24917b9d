package service_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
)

// Whoever asks whether the service is ready takes no connection from commits, and
// waits for none.
func TestReadyWhileEveryCommitConnectionIsTaken(t *testing.T) {
	db := pgtest.New(t)
	ctx := context.Background()
	c := config(db)
	c.CommitConns = 1
	s, err := service.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events.Create(ctx, "tester", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 1, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	release := lockJournal(t, db)
	status := make(chan int, 1)
	go func() { status <- hold(t, s.URL(), "k") }()
	awaitLockWait(t, db)

	answer, err := http.Get(s.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("readiness was answered %d", answer.StatusCode)
	}
	release()
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the hold was answered %d", got)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
