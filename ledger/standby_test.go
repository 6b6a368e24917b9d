package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// standby plays a synchronous standby that isn't there.
type standby struct {
	t     *testing.T
	owner *pgx.Conn
}

func newStandby(t *testing.T, db *pgtest.DB) *standby {
	t.Helper()
	owner, err := pgx.Connect(context.Background(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(context.Background()) })
	s := &standby{t, owner}
	s.exec(`SET synchronous_commit = local`)
	return s
}

func (s *standby) exec(sql string) {
	s.t.Helper()
	if _, err := s.owner.Exec(context.Background(), sql); err != nil {
		s.t.Fatal(err)
	}
}

// away makes commits wait for it. The server takes the setting at a time of its own,
// so commands are to be sent until one waits.
func (s *standby) away() {
	s.exec(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	s.exec(`SELECT pg_reload_conf()`)
}

// gone says that commits needn't wait any more.
func (s *standby) gone() {
	s.exec(`ALTER SYSTEM RESET synchronous_standby_names`)
	s.exec(`SELECT pg_reload_conf()`)
}

// cancelWait cancels the first wait of a transaction that began after a time, and
// gives that beginning.
func (s *standby) cancelWait(after time.Time) time.Time {
	s.t.Helper()
	for {
		var began time.Time
		var sent bool
		err := s.owner.QueryRow(context.Background(), `
SELECT xact_start, pg_cancel_backend(pid)
FROM pg_stat_activity
WHERE wait_event = 'SyncRep'
  AND xact_start > $1`, after).Scan(&began, &sent)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			time.Sleep(time.Millisecond) // pg_stat_activity can't be waited on
		case err != nil:
			s.t.Fatal(err)
		default:
			return began
		}
	}
}

// keepPosting sends commands, one after the other, until the returned func is
// called. Answered counts them.
func keepPosting(t *testing.T, l *ledger.Ledger, answered *atomic.Int64) (stop func()) {
	t.Helper()
	end := make(chan struct{})
	var client sync.WaitGroup
	client.Go(func() {
		for {
			c := transfer(t, fmt.Sprint("during ", answered.Load()), 1)
			if _, err := l.Do(context.Background(), books, c); err != nil {
				t.Errorf("command %d: %v", answered.Load(), err)
				return
			}
			answered.Add(1)
			select {
			case <-end:
				return
			default:
			}
		}
	})
	return func() { close(end); client.Wait() }
}

// A COMMIT whose wait for the synchronous standby is cancelled has committed here
// and perhaps not there: the server warns, and that's not success.
func TestACancelledWaitForTheStandbyIsNotSuccess(t *testing.T) {
	t.Parallel()
	db := private(t)
	l, reader := open(t, db.ServiceURL(), nil)
	s := newStandby(t, db)
	s.away()
	var answered atomic.Int64
	stop := keepPosting(t, l, &answered)
	// The commit waits; then the one that finds out waits for the same command.
	began := s.cancelWait(time.Time{})
	first := answered.Load()
	s.cancelWait(began)
	if answered.Load() != first {
		t.Error("a command was answered when its wait had been cancelled")
	}
	s.gone()
	stop()
	if a := bank(t, reader, ledger.Point{}); int64(a.Balance) != answered.Load() {
		t.Errorf("balance %d after %d commands", a.Balance, answered.Load())
	}
}

// What no standby has isn't done, whichever process is asked: a repeat elsewhere
// waits for the standby too.
func TestAnotherProcessDoesntAnswerForTheStandby(t *testing.T) {
	t.Parallel()
	db := private(t)
	one, _ := open(t, db.ServiceURL(), nil)
	two, _ := open(t, db.ServiceURL(), nil)
	s := newStandby(t, db)
	s.away()
	var answered atomic.Int64
	stop := keepPosting(t, one, &answered)
	began := s.cancelWait(time.Time{}) // from here on the entry is there to be seen
	c := transfer(t, fmt.Sprint("during ", answered.Load()), 1)
	s.cancelWait(began)
	call, cancel := context.WithCancel(context.Background())
	defer cancel()
	var other sync.WaitGroup
	other.Go(func() {
		if r, err := two.Do(call, books, c); !errors.Is(err, ledger.ErrOutcomeUnknown) {
			t.Errorf("the other process says %+v, %v", r, err)
		}
	})
	pgtest.Until(t, "the other process waits for the first", func() (waits bool) {
		if err := s.owner.QueryRow(context.Background(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	cancel()
	other.Wait()
	s.gone()
	stop()
}
