package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
)

// mail is a ledger with a journal, number 9, and dead letters of it.
type mail struct {
	*testing.T
	ctx    context.Context
	db     *pgtest.DB
	stores service.Stores
	owner  *pgx.Conn
	pool   *pgxpool.Pool
	store  *outbox.Letters
	// redo is what the consumer "tickets" does; it may be changed between two calls of Work.
	redo outbox.Redo
}

const mailed ledger.JournalID = 9

func openMail(t *testing.T) *mail {
	t.Helper()
	t.Parallel()
	m := &mail{T: t, ctx: t.Context(), db: pgtest.New(t)}
	m.db.Except("events_listed") // the journal is made without an event
	m.stores = pgtest.Stores(t, m.db, nil)
	var err error
	m.owner, err = pgx.Connect(m.ctx, m.db.URL())
	m.must(err)
	t.Cleanup(func() { m.owner.Close(context.Background()) })
	m.pool, err = pg.Open(m.ctx, pg.Options{URL: m.db.URL(), Name: "letters", Role: migrations.ServiceRole, MaxConns: 8})
	m.must(err)
	t.Cleanup(m.pool.Close)
	m.exec(`CREATE TABLE redone (letter uuid, seq bigint, kind text, data json)`)
	m.exec(`GRANT ALL ON redone TO tierledger_service`)
	m.redo = redone
	m.store = m.letters()
	m.must(m.stores.Ledger.Create(m.ctx, mailed))
	return m
}

// letters opens a store, as each process has one.
func (m *mail) letters() *outbox.Letters {
	return outbox.NewLetters(m.pool, m.pool, map[string]outbox.Redo{
		"tickets": func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
			return m.redo(ctx, tx, l, e)
		},
	}, nil)
}

// redone is an effect.
func redone(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
	_, err := tx.Exec(ctx, `INSERT INTO redone VALUES ($1, $2, $3, $4)`, l.ID, e.Seq, e.Kind, e.Data)
	return err
}

// puttingOff is an effect after which, the n-th time, its replay has nothing to do for an
// hour, however long the effects have taken.
func (m *mail) puttingOff(n int) outbox.Redo {
	return func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if n--; n == 0 {
			if _, err := tx.Exec(ctx, `UPDATE replays SET due_at = clock_timestamp() + interval '1 hour' WHERE replay_id = $1`, l.Replay); err != nil {
				return err
			}
		}
		return redone(ctx, tx, l, e)
	}
}

// violated gives what the package's checks find.
func (m *mail) violated() map[string][]string {
	m.Helper()
	found := make(map[string][]string)
	for _, c := range outbox.Checks() {
		rows, err := m.owner.Query(m.ctx, c.SQL, nil)
		m.must(err)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		m.must(err)
		if len(list) > 0 {
			found[c.Name] = list
		}
	}
	return found
}

func (m *mail) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// refused wants an error of a code.
func (m *mail) refused(err, code error) {
	m.Helper()
	if !errors.Is(err, code) {
		m.Fatalf("got %v, want %v", err, code)
	}
}

func (m *mail) exec(sql string, args ...any) {
	m.Helper()
	if _, err := m.owner.Exec(m.ctx, sql, args...); err != nil {
		m.Fatalf("%s: %v", sql, err)
	}
}

// text reads one value as text.
func (m *mail) text(sql string, args ...any) (text string) {
	m.Helper()
	m.must(m.owner.QueryRow(m.ctx, sql, args...).Scan(&text))
	return text
}

// remark is a command that records something and moves nothing.
type remark string

func (r remark) Accounts() []string { return nil }
func (r remark) Decide(*ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(string(r))
	return ledger.Decision{Kind: "test.remarked", Data: data}, err
}

// entry makes an entry that moves money, or none.
func (m *mail) entry(money bool, text string) (e outbox.Event) {
	m.Helper()
	var body ledger.Body = remark(text)
	if money {
		body = &ledger.Post{Description: text, Units: func(*ledger.State, ledger.Unit) string { return "" }, Legs: []ledger.Leg{
			{Account: "provider:sim", Unit: "USD", Amount: 5}, {Account: "organiser:o", Unit: "USD", Amount: -5}}}
	}
	c, err := ledger.NewCommand(mailed, "tester", uuid.NewString(), "test", text, body)
	m.must(err)
	receipt, err := m.stores.Ledger.Do(m.ctx, mailed, c)
	m.must(err)
	e.Journal, e.Seq = mailed, receipt.Seq
	m.must(m.owner.QueryRow(m.ctx, `SELECT id, kind, at, data FROM entries WHERE journal_id = $1 AND seq = $2`, int64(mailed), e.Seq).
		Scan(&e.ID, &e.Kind, &e.At, &e.Data))
	return e
}

// bury makes an entry dead for a consumer, as its inbox does.
func (m *mail) bury(consumer string, e outbox.Event, target string) uuid.UUID {
	m.Helper()
	m.must(pgx.BeginFunc(m.ctx, m.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(m.ctx, `INSERT INTO inbox (consumer, journal_id, seq) VALUES ($1, $2, $3)
			ON CONFLICT (consumer, journal_id) DO UPDATE SET seq = greatest(inbox.seq, excluded.seq)`, consumer, int64(e.Journal), e.Seq)
		if err != nil {
			return err
		}
		return outbox.Bury(m.ctx, tx, outbox.Letter{Consumer: consumer, Event: e, Target: target,
			Reason: "printer is on fire", Attempts: outbox.MaxAttempts})
	}))
	return outbox.LetterID(consumer, e.Journal, e.Seq, target)
}

// dead makes n letters of the consumer "tickets", which aren't about money.
func (m *mail) dead(n int) (ids []uuid.UUID) {
	m.Helper()
	for i := range n {
		ids = append(ids, m.bury("tickets", m.entry(false, fmt.Sprint("remark ", i)), ""))
	}
	return ids
}

func (m *mail) letter(id uuid.UUID) outbox.DeadLetter {
	m.Helper()
	l, err := m.store.Get(m.ctx, id)
	m.must(err)
	return l
}

// replayAll asks for a replay of all that's dead.
func (m *mail) replayAll(key string) outbox.Replay {
	m.Helper()
	r, repeated, err := m.store.Request(m.ctx, "ann", key, outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "mended"})
	m.must(err)
	if repeated {
		m.Fatalf("%+v was there before", r)
	}
	return r
}

// work does what's due after a second, during which nobody did.
func (m *mail) work() {
	m.Helper()
	m.exec(`UPDATE replays SET due_at = clock_timestamp() - interval '1 second' WHERE due_at IS NOT NULL`)
	m.must(m.store.Work(m.ctx))
}

// stands wants a replay's state and numbers, such as "stopped: 3 letters, 1 done, 1 failed, 0 freed, 1 left".
func (m *mail) stands(id uuid.UUID, want string) outbox.Replay {
	m.Helper()
	r, err := m.store.Replay(m.ctx, id)
	m.must(err)
	got := fmt.Sprintf("%s: %d letters, %d done, %d failed, %d freed, %d left", r.Status, r.Letters, r.Done, r.Failed, r.Freed, r.Left)
	if got != want {
		m.Fatalf("%s, want %s (%s)", got, want, r.Note)
	}
	return r
}

// effects lists the entries whose effects are there, in their order.
func (m *mail) effects() string {
	m.Helper()
	return m.text(`SELECT coalesce(string_agg(seq::text, ' ' ORDER BY ctid), '') FROM redone`)
}

// steps lists what was done with a replay, and by whom.
func steps(r outbox.Replay) string {
	var list []string
	for _, s := range r.Steps {
		list = append(list, s.Step+" by "+s.By)
	}
	return strings.Join(list, ", ")
}
