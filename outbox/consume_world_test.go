package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
)

// noted is the kind of world.write's entries, filed that of world.file's.
const noted, filed = "test.noted", "test.filed"

// shop is a world in which consumers leave their effects in a table. The table has no key:
// what's done twice is there twice. Another keeps every move of a position.
type shop struct{ *world }

const sqlShop = `
CREATE TABLE effects (
    n bigint GENERATED ALWAYS AS IDENTITY,
    consumer text NOT NULL,
    journal_id bigint NOT NULL,
    seq bigint NOT NULL
);
GRANT SELECT, INSERT ON effects TO ` + migrations.ServiceRole + `;
CREATE TABLE moves (
    n bigint GENERATED ALWAYS AS IDENTITY,
    consumer text NOT NULL,
    journal_id bigint NOT NULL,
    before bigint NOT NULL,
    seq bigint NOT NULL
);
CREATE FUNCTION keep_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO moves (consumer, journal_id, before, seq) VALUES (new.consumer, new.journal_id, old.seq, new.seq);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_move AFTER UPDATE ON inbox FOR EACH ROW WHEN (old.seq <> new.seq) EXECUTE FUNCTION keep_move();`

func openShop(t *testing.T) *shop {
	t.Helper()
	return shopOf(open(t))
}

func shopOf(w *world) *shop {
	w.t.Helper()
	w.exec(sqlShop)
	return &shop{w}
}

// exec runs SQL as the owner.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.owner.Exec(w.t.Context(), sql, args...)
	w.must(err)
}

// one reads one value as the owner.
func one[T any](w *world, sql string, args ...any) (value T) {
	w.t.Helper()
	w.must(w.owner.QueryRow(w.t.Context(), sql, args...).Scan(&value))
	return value
}

// process opens a pool as a further process has one.
func (w *world) process(url string) *pgxpool.Pool {
	w.t.Helper()
	pool, err := pg.Open(context.Background(), pg.Options{URL: url, Name: "outbox", Role: migrations.ServiceRole, MaxConns: 4})
	w.must(err)
	w.t.Cleanup(pool.Close)
	return pool
}

// act leaves effects.
func act(ctx context.Context, tx pgx.Tx, name string, events []outbox.Event) error {
	var journals []int64
	var seqs []ledger.Seq
	for _, e := range events {
		journals, seqs = append(journals, int64(e.Journal)), append(seqs, e.Seq)
	}
	_, err := tx.Exec(ctx, `INSERT INTO effects (consumer, journal_id, seq) SELECT $1, * FROM unnest($2::bigint[], $3::bigint[])`,
		name, journals, seqs)
	return err
}

// consumer takes effect from entries of some kinds, unless first (which may be nil) fails.
func consumer(name string, kinds []string, first func(e outbox.Event) error) outbox.Consumer {
	return outbox.Consumer{Name: name, Kinds: kinds, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		for i, e := range events {
			if first == nil {
				break
			}
			if err := first(e); err != nil {
				return errors.Join(act(ctx, tx, name, events[:i]), err)
			}
		}
		return act(ctx, tx, name, events)
	}}
}

// inbox makes one process of a consumer, and gives what its observer is told.
func (w *world) inbox(c outbox.Consumer, pool *pgxpool.Pool) (*outbox.Inbox, *diary) {
	seen := &diary{}
	return outbox.NewInbox(outbox.InboxOptions{Pool: pool, Consumer: c, Observe: seen.add, Log: w.log.logger()}), seen
}

// run has a process of a consumer run; stop ends it and waits for that. It's stopped at the
// test's end.
func (w *world) run(i *outbox.Inbox, feed outbox.Feed) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { i.Run(ctx, feed); close(done) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return stop
}

// diary keeps what an observer is told.
type diary struct {
	mu   sync.Mutex
	list []outbox.Step
}

func (s *diary) add(step outbox.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

func (s *diary) sum() (events, missed, failed, dead int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.list {
		events += step.Events
		missed += step.Missed
		if step.Failed {
			failed++
		}
		if step.Dead {
			dead++
		}
	}
	return events, missed, failed, dead
}

// told waits until the observer was told of so many effects: it's told after they're there.
func (s *diary) told(t *testing.T, effects int) {
	t.Helper()
	pgtest.Until(t, fmt.Sprintf("the observer is told of %d effects", effects), func() bool {
		events, _, _, _ := s.sum()
		return events >= effects
	})
}

// effects gives the seqs of a consumer's effects in a journal, in the order in which they
// took place.
func (s *shop) effects(name string, journal ledger.JournalID) []ledger.Seq {
	s.t.Helper()
	rows, err := s.owner.Query(s.t.Context(), `SELECT seq FROM effects WHERE consumer = $1 AND journal_id = $2 ORDER BY n`, name, int64(journal))
	s.must(err)
	seqs, err := pgx.CollectRows(rows, pgx.RowTo[ledger.Seq])
	s.must(err)
	return seqs
}

// wantEach checks that a consumer's effects are those of all entries of its kinds (none:
// all) but the dead ones, each once and in the journal's order, and that it's at the end.
func (s *shop) wantEach(name string, kinds []string, dead ...ledger.Seq) {
	s.t.Helper()
	ctx := s.t.Context()
	rows, err := s.owner.Query(ctx, `SELECT journal_id, seq FROM journals ORDER BY journal_id`)
	s.must(err)
	type journal struct {
		ID   ledger.JournalID
		Head ledger.Seq
	}
	journals, err := pgx.CollectRows(rows, pgx.RowToStructByPos[journal])
	s.must(err)
	for _, j := range journals {
		rows, err := s.owner.Query(ctx, `SELECT seq FROM entries WHERE journal_id = $1 AND ($2::text[] IS NULL OR kind = ANY ($2)) ORDER BY seq`,
			int64(j.ID), kinds)
		s.must(err)
		want, err := pgx.CollectRows(rows, pgx.RowTo[ledger.Seq])
		s.must(err)
		want = slices.DeleteFunc(want, func(seq ledger.Seq) bool { return slices.Contains(dead, seq) })
		if got := s.effects(name, j.ID); !slices.Equal(got, want) {
			s.t.Errorf("%s, journal %d: %s", name, j.ID, differ(got, want))
		}
		if at, _, _ := s.position(name, j.ID); at != j.Head && j.Head > 0 {
			s.t.Errorf("%s, journal %d: the position is %d of %d", name, j.ID, at, j.Head)
		}
	}
	if n := one[int](s.world, `SELECT count(*) FROM moves WHERE seq < before OR seq - before > 5000`); n > 0 {
		s.t.Errorf("%d moves of a position go back, or too far", n)
	}
}

// differ says how effects differ from those that are wanted.
func differ(got, want []ledger.Seq) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("effect %d is of entry %d, not of %d (%d of %d)", i+1, got[i], want[i], len(got), len(want))
		}
	}
	return fmt.Sprintf("%d effects, not %d", len(got), len(want))
}

// position gives where a consumer is in a journal; 0, 0, false when it hasn't begun.
func (s *shop) position(name string, journal ledger.JournalID) (at ledger.Seq, attempts int, waits bool) {
	s.t.Helper()
	err := s.owner.QueryRow(s.t.Context(), `SELECT seq, attempts, coalesce(retry_at > clock_timestamp(), false) FROM inbox
		WHERE consumer = $1 AND journal_id = $2`, name, int64(journal)).Scan(&at, &attempts, &waits)
	if !errors.Is(err, pgx.ErrNoRows) {
		s.must(err)
	}
	return at, attempts, waits
}

// due makes the time come at which a consumer's failed entries are tried again.
func (s *shop) due(name string) {
	s.t.Helper()
	s.exec(`UPDATE inbox SET retry_at = clock_timestamp() WHERE consumer = $1 AND retry_at IS NOT NULL`, name)
}

// arrived waits until a consumer is at the end of every journal.
func (s *shop) arrived(i *outbox.Inbox) {
	s.t.Helper()
	pgtest.Until(s.t, i.Consumer.Name+" has seen everything", func() bool {
		l, err := i.Lag(s.t.Context())
		return err == nil && l.Entries == 0
	})
}

// filing is a command whose entry is of another kind than a note's.
type filing struct{ Text string }

func (f filing) Accounts() []string { return nil }
func (f filing) Decide(*ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(f)
	return ledger.Decision{Kind: filed, Data: data}, err
}

// file adds an entry of the kind filed to a journal that's there.
func (w *world) file(journal ledger.JournalID, text string) {
	w.t.Helper()
	c, err := ledger.NewCommand(journal, "tester", text, "file", text, filing{text})
	w.must(err)
	_, err = w.Ledger.Do(w.t.Context(), journal, c)
	w.must(err)
}

// letter reads the dead letter of an entry.
func (s *shop) letter(name string, journal ledger.JournalID, seq ledger.Seq) (attempts int, reason string, payload outbox.Event) {
	s.t.Helper()
	var text []byte
	s.must(s.owner.QueryRow(s.t.Context(), `SELECT attempts, reason, payload FROM dead_letters
		WHERE consumer = $1 AND journal_id = $2 AND seq = $3 AND status = 'dead'`, name, int64(journal), seq).
		Scan(&attempts, &reason, &text))
	s.must(json.Unmarshal(text, &payload))
	return attempts, reason, payload
}

// fill adds n entries of the kind noted to a journal that's there. It may be called beside
// a test's goroutine.
func (w *world) fill(journal ledger.JournalID, n int) {
	for i := range n {
		text := fmt.Sprintf("filling %d", i)
		c, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
		if err == nil {
			_, err = w.Ledger.Do(w.t.Context(), journal, c)
		}
		if err != nil {
			w.t.Error(err)
			return
		}
	}
}

// plant makes a journal with n entries at once, which the ledger didn't write.
func (w *world) plant(journal ledger.JournalID, n int, kind string) {
	w.t.Helper()
	w.exec(`INSERT INTO journals (journal_id, seq) VALUES ($1, $2)`, int64(journal), n)
	w.exec(`INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
		SELECT $1, n, gen_random_uuid(), $3, clock_timestamp(), 'tester', sha256(''), '{}', sha256('')
		FROM generate_series(1, $2::bigint) n`, int64(journal), n, kind)
}

// waiting counts the sessions that wait for another's lock.
func (w *world) waiting() int {
	w.t.Helper()
	return one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// logged tells whether the log has a text.
func (s *shop) logged(text string) bool { return strings.Contains(s.log.String(), text) }

// reconnect connects the owner anew.
func (w *world) reconnect() {
	w.t.Helper()
	var err error
	w.owner, err = pgx.Connect(w.t.Context(), w.db.URL())
	w.must(err)
	owner := w.owner
	w.t.Cleanup(func() { owner.Close(context.Background()) })
}

// awayErrors are ways to say that a dependency is away.
func awayErrors() []error {
	return []error{
		outbox.ErrAway,
		fmt.Errorf("ask the printer: %w", outbox.ErrAway),
		fmt.Errorf("%w: %w", outbox.ErrAway, &net.OpError{Op: "dial", Err: errors.New("refused")}),
		errors.Join(context.DeadlineExceeded, outbox.ErrAway),
	}
}

// discard takes what nobody wants.
func discard(time.Duration) {}
