package outbox_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// The checks find what a wrong program or person could do to the rows.
func TestLetterChecksFindSabotage(t *testing.T) {
	m := openMail(t)
	m.db.Tampered()
	m.dead(3)
	m.bury("tickets", m.entry(true, "a payment"), "")
	m.replayAll("rejected")
	r := m.replayAllAfter("rejected")
	_, _, err := m.store.Approve(m.ctx, "bob", "approve", r.ID)
	m.must(err)
	m.redo = m.puttingOff(1)
	m.work()
	for i, c := range []struct{ check, sql string }{
		{"replays_counted", `UPDATE replays SET letters = letters + 1 WHERE status = 'running'`},
		{"replays_counted", `UPDATE replays SET done = done - 1 WHERE done > 0`},
		{"replays_counted", `DELETE FROM replays WHERE status = 'running'`},
		{"replays_counted", `UPDATE dead_letters SET taken = false WHERE taken`},
		{"replays_decided", `UPDATE replays SET money = 0, decided_by = NULL, status = 'awaiting_approval', due_at = NULL WHERE status = 'running'`},
		{"replays_decided", `UPDATE replays SET status = 'done', due_at = NULL WHERE status = 'running'`},
		{"replays_decided", `UPDATE replays SET freed = freed - 1 WHERE status = 'rejected'`},
		{"replays_stepped", `DELETE FROM replay_steps WHERE step = 'approved'`},
		{"replays_stepped", `UPDATE replay_steps SET principal = 'eve' WHERE step = 'requested'`},
		{"replays_stepped", `UPDATE replays SET decided_by = 'eve' WHERE status = 'running'`},
		{"letters_ended_by_replays", `UPDATE replays SET action = 'discard' WHERE status = 'running'`},
		{"letters_ended_by_replays", `UPDATE dead_letters SET replay_id = (SELECT replay_id FROM replays WHERE status = 'rejected') WHERE taken`},
		{"letters_let_go", `UPDATE inbox SET seq = seq - 1`},
		{"letters_let_go", `DELETE FROM inbox`},
		{"letters_of_entries", `UPDATE dead_letters SET money = NOT money WHERE money`},
		{"letters_of_entries", `UPDATE dead_letters SET kind = 'other' WHERE seq = 1`},
		{"letters_of_entries", `UPDATE dead_letters SET seq = 1 WHERE seq = 2`},
	} {
		t.Run(fmt.Sprint(i, " ", c.check), func(t *testing.T) {
			m.exec(`BEGIN`)
			defer m.exec(`ROLLBACK`)
			if found := m.violated(); len(found) != 0 {
				t.Fatal(found)
			}
			m.exec(c.sql)
			if found := m.violated(); len(found[c.check]) == 0 {
				t.Errorf("it found %v", found)
			}
		})
	}
}

// replayAllAfter rejects the replay that was asked for under a key, and asks again.
func (m *mail) replayAllAfter(key string) outbox.Replay {
	m.Helper()
	_, _, err := m.store.Reject(m.ctx, "bob", key, ledger.NewID(ledger.System, "ann", key, "replay"), "no")
	m.must(err)
	return m.replayAll(key + " again")
}

// A tampered row can't be made by the service's role: what's kept of a letter is for good.
func TestTheServiceMayNotEditLetters(t *testing.T) {
	m := openMail(t)
	for _, sql := range []string{
		`UPDATE dead_letters SET money = false`, `UPDATE dead_letters SET payload = ''`, `UPDATE dead_letters SET seq = 1`, `DELETE FROM dead_letters`,
		`UPDATE replays SET requested_by = ''`, `UPDATE replays SET canary = false`, `DELETE FROM replays`,
		`UPDATE replay_steps SET principal = ''`, `DELETE FROM replay_steps`,
	} {
		err := pgx.BeginFunc(m.ctx, m.pool, func(tx pgx.Tx) error { _, err := tx.Exec(m.ctx, sql); return err })
		if err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
}
