package service_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

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
	if _, err := s.Events.Create(ctx, "tester", "event", gig(1000)); err != nil {
		t.Fatal(err)
	}
	unlessLate(t, probePatience, func(round int) []string { return readyWhileTaken(t, db, s, round) })
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// probePatience is how long readiness waits for the database: what takes longer says nothing
// about whose connections were taken.
const probePatience = 2 * time.Second

// readyWhileTaken asks whether a service is ready while a hold has its connection, and gives
// what went wrong.
func readyWhileTaken(t *testing.T, db *pgtest.DB, s *service.Service, round int) (wrong []string) {
	t.Helper()
	release := lockJournal(t, db)
	status := make(chan int, 1)
	go func() { status <- hold(t, s.URL(), fmt.Sprint(round)) }()
	awaitLockWait(t, db, func() bool { return len(status) > 0 })
	answer, err := http.Get(s.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		wrong = append(wrong, fmt.Sprintf("readiness was answered %d", answer.StatusCode))
	}
	release()
	if got := <-status; got != http.StatusCreated {
		wrong = append(wrong, fmt.Sprintf("the hold was answered %d", got))
	}
	return wrong
}
