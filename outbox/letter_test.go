package outbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
)

// A letter says what it's about, and that it's about money when its entry moved some.
func TestALetterIsKept(t *testing.T) {
	m := openMail(t)
	plain, paid := m.entry(false, "hello"), m.entry(true, "a payment")
	for _, c := range []struct {
		event outbox.Event
		money bool
	}{{plain, false}, {paid, true}} {
		l := m.letter(m.bury("tickets", c.event, "printer 7"))
		if l.Consumer != "tickets" || l.Journal != mailed || l.Seq != c.event.Seq || l.Target != "printer 7" || l.Kind != c.event.Kind ||
			l.Reason != "printer is on fire" || l.Attempts != outbox.MaxAttempts || l.Status != outbox.Dead || l.Money != c.money ||
			l.Replay != nil || l.EndedAt != nil || l.Taken || l.DiedAt.IsZero() {
			t.Errorf("%+v", l)
		}
		var e outbox.Event
		m.must(json.Unmarshal(l.Payload, &e))
		if e.Seq != c.event.Seq || e.ID != c.event.ID || !bytes.Equal(e.Data, c.event.Data) {
			t.Errorf("%s of %+v", l.Payload, c.event)
		}
	}
	m.refused(func() error { _, err := m.store.Get(m.ctx, uuid.New()); return err }(), outbox.ErrLetterNotFound)
}

// What dies twice is one letter, which tells of the last time and counts both.
func TestALetterDiesAgain(t *testing.T) {
	m := openMail(t)
	e := m.entry(false, "hello")
	id := m.bury("tickets", e, "")
	first := m.letter(id)
	m.must(pgx.BeginFunc(m.ctx, m.pool, func(tx pgx.Tx) error {
		return outbox.Bury(m.ctx, tx, outbox.Letter{Consumer: "tickets", Event: e, Reason: "out of paper", Attempts: 3})
	}))
	again := m.letter(id)
	if again.Attempts != outbox.MaxAttempts+3 || again.Reason != "out of paper" || !again.DiedAt.After(first.DiedAt) {
		t.Errorf("%+v after %+v", again, first)
	}
	m.bury("tickets", e, "another target")
	m.bury("webhooks", e, "")
	if n := m.text(`SELECT count(*)::text FROM dead_letters`); n != "3" {
		t.Errorf("%s letters", n)
	}
}

// Whatever came can be kept, as it came up to a limit.
func TestALetterTakesAnything(t *testing.T) {
	m := openMail(t)
	big := bytes.Repeat([]byte("x"), 1<<20+1)
	for name, c := range map[string]struct {
		letter outbox.Letter
		keeps  func(outbox.DeadLetter) bool
	}{
		"no text": {outbox.Letter{Consumer: "tickets", Target: "a\x00\xff", Payload: []byte("\x00\xff"), Reason: "\x00\xff", Attempts: 1},
			func(l outbox.DeadLetter) bool {
				return string(l.Payload) == "\x00\xff" && l.Reason == "\uFFFD\uFFFD" && l.Target == "a\uFFFD\uFFFD"
			}},
		"nothing": {outbox.Letter{}, func(l outbox.DeadLetter) bool { return len(l.Payload) == 0 && l.Attempts == 1 }},
		"as much as may be": {outbox.Letter{Consumer: "tickets", Target: "b", Payload: big[1:]},
			func(l outbox.DeadLetter) bool { return bytes.Equal(l.Payload, big[1:]) }},
		"too much": {outbox.Letter{Consumer: "tickets", Target: "c", Payload: big},
			func(l outbox.DeadLetter) bool { return len(l.Payload) == 1<<20 }},
		"a long reason": {outbox.Letter{Consumer: "tickets", Target: "d", Reason: strings.Repeat("ä", 1500)},
			func(l outbox.DeadLetter) bool {
				return len(l.Reason) <= 2000 && strings.HasPrefix(l.Reason, "ää") && strings.HasSuffix(l.Reason, "ä…")
			}},
	} {
		m.must(pgx.BeginFunc(m.ctx, m.pool, func(tx pgx.Tx) error { return outbox.Bury(m.ctx, tx, c.letter) }))
		found, err := m.store.List(m.ctx, outbox.LetterPage{LetterFilter: outbox.LetterFilter{}, Limit: 1})
		m.must(err)
		if l := m.letter(found[0].ID); !c.keeps(l) || l.Seq != 0 || l.Money {
			t.Errorf("%s: %d bytes, %+v", name, len(l.Payload), found[0])
		}
	}
	e := m.entry(false, string(big))
	l := m.letter(m.bury("tickets", e, "large"))
	var bare outbox.Event
	m.must(json.Unmarshal(l.Payload, &bare))
	if bare.ID != e.ID || bare.Data != nil || !strings.Contains(string(l.Payload), outbox.DataRef(e.Journal, e.Seq)) {
		t.Errorf("%.300s", l.Payload)
	}
}

// A filter selects by each of its fields, and pages have every letter once.
func TestLettersAreListed(t *testing.T) {
	m := openMail(t)
	plain, paid := m.entry(false, "hello"), m.entry(true, "a payment")
	a, b := m.bury("tickets", plain, "x"), m.bury("webhooks", paid, "y")
	m.exec(`UPDATE dead_letters SET reason = '100 % full' WHERE letter_id = $1`, b)
	between := m.letter(b).DiedAt
	junk := outbox.LetterID("webhooks", 0, 0, "stream 5")
	m.must(pgx.BeginFunc(m.ctx, m.pool, func(tx pgx.Tx) error {
		return outbox.Bury(m.ctx, tx, outbox.Letter{Consumer: "webhooks", Target: "stream 5", Payload: []byte("?"), Reason: "no entry", Attempts: 1})
	}))
	number, none := mailed, uuid.New()
	list := func(p outbox.LetterPage) (ids []uuid.UUID) {
		t.Helper()
		p.Limit = 10
		found, err := m.store.List(m.ctx, p)
		m.must(err)
		for _, l := range found {
			ids = append(ids, l.ID)
		}
		return ids
	}
	type filter = outbox.LetterFilter
	for i, c := range []struct {
		page outbox.LetterPage
		want []uuid.UUID
	}{
		{outbox.LetterPage{}, []uuid.UUID{junk, b, a}},
		{outbox.LetterPage{Status: outbox.Dead}, []uuid.UUID{junk, b, a}},
		{outbox.LetterPage{Status: outbox.Replayed}, nil},
		{outbox.LetterPage{LetterFilter: filter{Consumer: "webhooks"}}, []uuid.UUID{junk, b}},
		{outbox.LetterPage{LetterFilter: filter{Kind: plain.Kind}}, []uuid.UUID{a}},
		{outbox.LetterPage{LetterFilter: filter{Journal: &number}}, []uuid.UUID{b, a}},
		{outbox.LetterPage{LetterFilter: filter{Target: "y"}}, []uuid.UUID{b}},
		{outbox.LetterPage{LetterFilter: filter{Reason: "0 %"}}, []uuid.UUID{b}},
		{outbox.LetterPage{LetterFilter: filter{Reason: "0_%"}}, nil},
		{outbox.LetterPage{LetterFilter: filter{Replay: &none}}, nil},
		{outbox.LetterPage{LetterFilter: filter{Since: between}}, []uuid.UUID{junk, b}},
		{outbox.LetterPage{LetterFilter: filter{Until: between}}, []uuid.UUID{a}},
		{outbox.LetterPage{LetterFilter: filter{Since: between, Until: between.Add(time.Microsecond)}, Status: outbox.Dead}, []uuid.UUID{b}},
	} {
		if got := list(c.page); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	m.exec(`UPDATE dead_letters SET died_at = $1`, between) // ids decide then
	for _, status := range []outbox.LetterStatus{"", outbox.Dead} {
		seen := make(map[uuid.UUID]bool)
		page := outbox.LetterPage{Status: status, Limit: 1}
		for range 4 {
			found, err := m.store.List(m.ctx, page)
			m.must(err)
			for _, l := range found {
				seen[l.ID], page.Before, page.Last = true, l.DiedAt, l.ID
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d of 3 letters in pages", len(seen))
		}
	}
	if _, err := m.store.List(m.ctx, outbox.LetterPage{LetterFilter: filter{Kind: "\x00"}}); err == nil {
		t.Error("no kind has a zero byte")
	}
}

// What's dead is counted by consumer, with the age of the oldest.
func TestLettersAreCounted(t *testing.T) {
	m := openMail(t)
	e := m.entry(true, "a payment")
	m.bury("tickets", e, "a")
	m.bury("tickets", e, "b")
	m.bury("webhooks", e, "")
	m.exec(`UPDATE dead_letters SET died_at = died_at - interval '1 hour' WHERE target = 'b'`)
	m.replayAll("k")
	c, err := m.store.Counts(m.ctx)
	m.must(err)
	if len(c.Dead) != 2 || c.Awaiting != 1 || c.Running != 0 || c.Stopped != 0 || c.Dead[0].Consumer != "tickets" || c.Dead[0].Letters != 2 ||
		c.Dead[0].Oldest < time.Hour || c.Dead[0].Oldest > 2*time.Hour || c.Dead[1].Letters != 1 || c.Dead[1].Oldest > time.Hour {
		t.Errorf("%+v", c)
	}
}

func TestStatementsOfLettersArePrepared(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), outbox.LetterStatements, "letter_sql.go")
}

// manyLetters are 20,000 letters of each of two consumers, 100 of them dead; and 20,000
// replays, one of which has 50.
var manyLetters = []string{
	`INSERT INTO dead_letters (letter_id, consumer, journal_id, seq, target, kind, payload, money, reason, attempts, died_at, status,
	                           taken, replay_id, ended_at)
	 SELECT md5(consumer || n)::uuid, consumer, n % 50, n, '', 'k', '', false, 'r', 1, now() - n * interval '1 second',
	        CASE WHEN n <= 50 THEN 'dead' ELSE 'replayed' END, n <= 25, md5('r')::uuid, CASE WHEN n > 50 THEN now() END
	 FROM unnest('{tickets,webhooks}'::text[]) consumer, generate_series(1, 20000) n`,
	`INSERT INTO replays (replay_id, action, status, chosen, rate, canary, reason, requested_by, requested_at, changed_at, letters, done, due_at)
	 SELECT md5(concat('r', nullif(n, 1)))::uuid, 'replay', CASE n % 1000 WHEN 1 THEN 'running' ELSE 'done' END, '{}', 10, true, 'r', 'p',
	        now() - n * interval '1 second', now(), 1, 1, CASE n % 1000 WHEN 1 THEN now() END
	 FROM generate_series(1, 20000) n`,
	`INSERT INTO replay_steps (step_id, replay_id, step, principal, at, reason)
	 SELECT md5('s' || n)::uuid, md5('r' || n % 7000)::uuid, 'done', 'p', now(), '' FROM generate_series(1, 20000) n`,
	`INSERT INTO inbox (consumer, journal_id, seq) SELECT c, n, 1 FROM unnest('{tickets,webhooks}'::text[]) c, generate_series(1, 10000) n`,
	`INSERT INTO postings SELECT j, n, 0, 'a:' || n % 100, 'USD', 1, n FROM generate_series(1, 2) j, generate_series(1, 20000) n`,
}

// Letters and replays are found by their keys, whatever plan was made before there were
// any.
func TestPlansMadeForNoLettersServeMany(t *testing.T) {
	t.Parallel()
	none := `'', '', NULL, '', '', NULL, '-infinity', 'infinity'`
	pgtest.Plans{
		Statements: outbox.LetterStatements, Tables: `dead_letters, replays, replay_steps, inbox, postings`, Many: manyLetters, MaxPages: 400,
		Commits: map[string]string{
			"sqlBury":         `(md5('new')::uuid, 'tickets', 1, 7, '', 'k', '', '', 1)`,
			"sqlChoose":       `(` + none + `, 'discard', '{}', NULL, 100)`,
			"sqlNamedLetters": `(ARRAY[md5('tickets1')::uuid, md5('none')::uuid])`,
			"sqlTake":         `(md5('tickets30')::uuid, md5('r')::uuid, NULL)`,
			"sqlLockReplay":   `(md5('r')::uuid)`,
			"sqlDueReplay":    ``,
			"sqlNextLetter":   `(md5('r')::uuid)`,
			"sqlHoldInbox":    `('tickets', 7)`,
			"sqlTakenLetter":  `(md5('r')::uuid)`,
			"sqlCountLetter":  `(md5('r1001')::uuid, 0, 0)`,
			"sqlFree":         `(md5('other')::uuid)`,
			"sqlStep":         `(md5('s1')::uuid)`,
		},
		Reads: map[string]string{
			"sqlLetter":       `(md5('tickets1')::uuid)`,
			"sqlReplay":       `(md5('r')::uuid)`,
			"sqlLetters":      `(` + none + `, '', 'infinity', md5('')::uuid, 100)`,
			"sqlDeadLetters":  `(` + none + `, 'dead', 'infinity', md5('')::uuid, 100)`,
			"sqlLeftOut":      `(` + none + `, 'replay', '{}', NULL)`,
			"sqlReplays":      `('infinity', md5('')::uuid, '', '', 100)`,
			"sqlSteps":        `(md5('r7')::uuid)`,
			"sqlCountDead":    ``,
			"sqlCountReplays": ``,
		},
	}.Check(t)
}
