package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/internal/verify"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// wreck is a database on which a process does something, dies between two of its commits,
// and leaves the rest to others.
type wreck struct {
	*testing.T
	db     *pgtest.DB
	owner  *pgx.Conn
	doomed service.Stores
	heirs  service.Stores
}

// wrecked makes an event of 100 tickets of which moves of 40 need approval.
func wrecked(t *testing.T) *wreck {
	t.Helper()
	db := pgtest.New(t)
	owner, err := pgx.Connect(context.Background(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(context.Background()) })
	w := &wreck{t, db, owner, pgtest.Stores(t, db, nil), pgtest.Stores(t, db, nil)}
	// A commit writes its journal's row, and nothing else does; what a sequence has counted
	// isn't undone with it.
	w.exec(`CREATE SEQUENCE commits`)
	w.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF nextval('public.commits') > TG_ARGV[0]::bigint THEN
				RAISE EXCEPTION 'the process died';
			END IF;
			RETURN NEW;
		END $$`)
	w.must(w.heirs.Events.Create(t.Context(), "op", "create", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		ApproveMovesFrom: new(int64(40)), Tiers: []buckets.TierSpec{
			{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}))
	return w
}

func (w *wreck) exec(sql string) {
	w.Helper()
	if _, err := w.owner.Exec(context.Background(), sql); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *wreck) must(_ ledger.Receipt, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// number reads one number.
func (w *wreck) number(sql string, args ...any) (n int64) {
	w.Helper()
	if err := w.owner.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// commits runs f, of which only the first n commits are made, and counts those that it
// tried.
func (w *wreck) commits(n int, f func()) int {
	w.Helper()
	w.exec(`ALTER SEQUENCE commits RESTART`)
	w.exec(fmt.Sprintf(`CREATE TRIGGER die BEFORE INSERT OR UPDATE ON journals FOR EACH ROW EXECUTE FUNCTION die(%d)`, n))
	f()
	w.exec(`DROP TRIGGER die ON journals`)
	return int(w.number(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM commits`))
}

// sound refuses a state in which anything isn't as it should be at every instant.
func (w *wreck) sound() {
	w.Helper()
	summary, err := verify.Run(context.Background(), w.db.URL(), verify.Options{})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range summary.Checks {
		if c.Count > 0 {
			w.Errorf("where the process died, %s: %q", c.Check, c.Violations)
		}
	}
}

// sweep does what every process's sweeper and rebalancer do, as often as it may take.
func (w *wreck) sweep() {
	w.Helper()
	ctx := context.Background()
	s := w.heirs
	w.must(ledger.Receipt{}, w.patiently(func() error {
		return errors.Join(s.Events.OpenCreated(ctx), s.Events.FollowLanes(ctx), s.Quotas.Resume(ctx), s.Quotas.Resume(ctx),
			s.Quotas.Release(ctx), s.Quotas.Balance(ctx))
	}))
}

// patiently repeats what came too late, as the heirs would.
func (w *wreck) patiently(do func() error) error {
	w.Helper()
	return (&desk{t: w, Stores: w.heirs}).patiently(do)
}

// do does something to its end.
func (w *wreck) do(act last, s service.Stores) (r ledger.Receipt, err error) {
	w.Helper()
	err = w.patiently(func() error {
		r, err = act.do(w, s)
		return err
	})
	return r, err
}

// settled wants that nothing is under way, that no lane is behind, and that what has ended
// has nothing left.
func (w *wreck) settled() {
	w.Helper()
	if n := w.number(`SELECT count(*) FROM quota_moves m WHERE status = 'moved' AND to_journal <> journal_id
		AND NOT EXISTS (SELECT FROM quota_arrivals a WHERE a.journal_id = m.to_journal AND a.move_id = m.move_id)`); n != 0 {
		w.Errorf("%d moves are under way", n)
	}
	if n := w.number(`SELECT coalesce(sum(balance), 0)::bigint FROM accounts WHERE code = ANY (SELECT 'available:' || allotment FROM allotments
		WHERE closed_at IS NOT NULL)`); n > 0 {
		w.Errorf("%d tickets are left with an allotment that was closed", n)
	}
	if n := w.number(`SELECT coalesce(sum(balance), 0)::bigint FROM accounts a JOIN lanes l USING (journal_id)
		WHERE a.code = 'available' AND l.lane > l.counts[cardinality(l.counts)]`); n > 0 {
		w.Errorf("%d tickets are left in lanes that aren't in use", n)
	}
	if n := w.number(`SELECT count(DISTINCT generation) FROM lanes l WHERE journal_id = ANY (SELECT unnest(journals) FROM lanes WHERE lane = 1)`); n > 1 {
		w.Errorf("lanes go by %d layouts", n)
	}
}

// free lists what lanes have of a bucket.
func (w *wreck) free(account string, unit ledger.Unit) []ledger.Amount {
	w.Helper()
	f, err := w.heirs.Events.Free(context.Background(), "gig", account, unit)
	w.must(ledger.Receipt{}, err)
	var list []ledger.Amount
	for _, l := range f.Lanes {
		list = append(list, l.Free)
	}
	return list
}

func (w *wreck) want(what string, got, want any) {
	w.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s: %v, want %v", what, got, want)
	}
}

// split splits or merges, for a test's preparation.
func (w *wreck) split(lanes int) {
	w.Helper()
	key := uuid.NewString()
	w.must(ledger.Receipt{}, w.patiently(func() error {
		_, err := w.heirs.Quotas.Split(context.Background(), "op", key, "gig", lanes, "a test", nil, false)
		return err
	}))
}

func (w *wreck) move(s service.Stores, key string, from, to quota.Bucket, n ledger.Amount) (ledger.Receipt, error) {
	return s.Quotas.Move(context.Background(), "op", key, "gig",
		quota.Request{Tier: "ga", From: from, To: to, Quantity: &n, Reason: "a test"}, nil, false)
}

// last is something that a process does, and what is to come of it.
type last struct {
	prepare func(*wreck)
	do      func(*wreck, service.Stores) (ledger.Receipt, error)
	want    func(*wreck)
}

// lasts are acts that take several commits.
func lasts() map[string]last {
	ctx := context.Background()
	fans := quota.Bucket{Allotment: "fans"}
	return map[string]last{
		"a split": {
			prepare: func(*wreck) {},
			do: func(_ *wreck, s service.Stores) (ledger.Receipt, error) {
				return s.Quotas.Split(ctx, "op", "k", "gig", 3, "a test", nil, false)
			},
			want: func(w *wreck) {
				w.want("lanes", w.number(`SELECT count(*) FROM lanes WHERE counts[cardinality(counts)] = 3`), 3)
				w.takes(100)
			},
		},
		"a merge": {
			prepare: func(w *wreck) { w.split(3) },
			do: func(_ *wreck, s service.Stores) (ledger.Receipt, error) {
				return s.Quotas.Split(ctx, "op", "k", "gig", 1, "a test", nil, false)
			},
			want: func(w *wreck) { w.want("free", w.free(ledger.Available, "ga"), "[100 0 0]") },
		},
		"a move": {
			prepare: func(w *wreck) { w.split(4) },
			do: func(w *wreck, s service.Stores) (ledger.Receipt, error) {
				return w.move(s, "k", quota.Bucket{Lane: 1}, quota.Bucket{Lane: 2}, 10)
			},
			want: func(w *wreck) { w.want("free", w.free(ledger.Available, "ga"), "[15 35 25 25]") },
		},
		"a move out of all lanes": {
			prepare: func(w *wreck) {
				w.split(4)
				w.must(w.heirs.Events.Allot(ctx, "op", "allot", "gig", buckets.AllotmentSpec{Allotment: "fans"}))
			},
			do: func(w *wreck, s service.Stores) (ledger.Receipt, error) {
				return w.move(s, "k", quota.Bucket{}, fans, 39)
			},
			want: func(w *wreck) { w.want("fans", w.free(ledger.FreeOf("fans"), "ga"), "[39 0 0 0]") },
		},
		"an approval": {
			prepare: func(w *wreck) {
				w.split(2)
				w.must(w.move(w.heirs, "asked", quota.Bucket{Lane: 1}, quota.Bucket{Lane: 2}, 40))
			},
			do: func(w *wreck, s service.Stores) (ledger.Receipt, error) {
				home, err := s.Events.Journal(ctx, "gig")
				if err != nil {
					return ledger.Receipt{}, err
				}
				return s.Quotas.Decide(ctx, "boss", "k", ledger.NewID(home, "op", "asked"), true, "")
			},
			want: func(w *wreck) { w.want("free", w.free(ledger.Available, "ga"), "[10 90]") },
		},
		"an allotment's end": {
			prepare: func(w *wreck) {
				w.split(3)
				w.must(w.heirs.Events.Allot(ctx, "op", "allot", "gig", buckets.AllotmentSpec{Allotment: "fans"}))
				for lane := 1; lane <= 3; lane++ {
					w.must(w.move(w.heirs, fmt.Sprint(lane), quota.Bucket{Lane: lane}, quota.Bucket{Lane: lane, Allotment: "fans"}, 20))
				}
			},
			do: func(_ *wreck, s service.Stores) (ledger.Receipt, error) {
				return s.Quotas.CloseAllotment(ctx, "op", "k", "gig", "fans", "a test", nil)
			},
			want: func(w *wreck) {
				w.want("fans", w.free(ledger.FreeOf("fans"), "ga"), "[0 0 0]")
				w.takes(100)
			},
		},
		"a smaller capacity": {
			prepare: func(w *wreck) { w.split(4) },
			do: func(_ *wreck, s service.Stores) (ledger.Receipt, error) {
				return s.Quotas.ChangeTier(ctx, "op", "k", "gig", "ga", buckets.TierChange{Quantity: new(ledger.Amount(30))}, nil, false)
			},
			want: func(w *wreck) { w.takes(30) },
		},
		"a hold of what all lanes have": {
			prepare: func(w *wreck) { w.split(4) },
			do:      func(w *wreck, s service.Stores) (ledger.Receipt, error) { return w.place(s, "k", 100) },
			want: func(w *wreck) {
				w.want("free", w.free(ledger.Available, "ga"), "[0 0 0 0]")
				w.want("holds", w.number(`SELECT count(*) FROM holds`), 1)
			},
		},
	}
}

func (w *wreck) place(s service.Stores, key string, n ledger.Amount) (ledger.Receipt, error) {
	return s.Holds.Place(context.Background(), "shop", key, "gig",
		holds.Request{Customer: "ann", Items: []holds.Line{{Tier: "ga", Quantity: n}}})
}

// takes wants that so many can be had.
func (w *wreck) takes(n ledger.Amount) {
	w.Helper()
	w.must(ledger.Receipt{}, w.patiently(func() error {
		_, err := w.place(w.heirs, "all", n)
		return err
	}))
}

// A process that dies between any two of its commits leaves a sound state, which others
// finish; who asked is told the same under the same key, and nothing happens twice.
func TestWhatTheDeadLeaveIsFinished(t *testing.T) {
	t.Parallel()
	const all = 1 << 30
	for name, act := range lasts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wrecked(t)
			act.prepare(w)
			total := w.commits(all, func() { w.must(w.do(act, w.doomed)) })
			w.sweep()
			w.settled()
			act.want(w)
			if total < 2 {
				t.Fatalf("it takes %d commits", total)
			}
			for n := range total {
				t.Run(fmt.Sprint("after ", n, " of ", total), func(t *testing.T) {
					t.Parallel()
					w := wrecked(t)
					act.prepare(w)
					var first ledger.Receipt
					var err error
					w.commits(n, func() { first, err = act.do(w, w.doomed) }) // fewer are enough when some go together
					w.sound()
					w.sweep()
					w.settled()
					again, againErr := w.do(act, w.heirs)
					w.must(again, againErr)
					if err == nil && (!again.Replayed || string(again.Data) != string(first.Data)) {
						t.Errorf("first %s, then %s", first.Data, again.Data)
					}
					w.sweep()
					w.settled()
					act.want(w)
				})
			}
		})
	}
}

// An operator may name a lane while it's being made, or after who made it has died: there's
// none until the event's layout has it.
func TestALaneThatIsOnlyBeingMade(t *testing.T) {
	t.Parallel()
	split := lasts()["a split"]
	w := wrecked(t)
	total := w.commits(1<<30, func() { w.must(w.do(split, w.doomed)) })
	for n := range total {
		t.Run(fmt.Sprint("after ", n, " of ", total), func(t *testing.T) {
			t.Parallel()
			w := wrecked(t)
			w.commits(n, func() { _, _ = split.do(w, w.doomed) })
			made := w.number(`SELECT cardinality(journals) FROM lanes WHERE lane = 1 UNION ALL SELECT 1 LIMIT 1`) > 1
			var err error
			_ = w.patiently(func() error {
				_, err = w.move(w.heirs, "of one", quota.Bucket{Lane: 2}, quota.Bucket{Lane: 1}, 1)
				return err
			})
			switch {
			case !made && !errors.Is(err, buckets.ErrLaneNotFound):
				t.Errorf("of a lane that isn't there yet: %v", err)
			case made && err != nil && !errors.Is(err, ledger.ErrInsufficientFree): // its tickets may come later
				t.Errorf("of a lane without tickets: %v", err)
			}
			w.sweep()
		})
	}
}
