package subscribers_test

import (
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/subscribers"
)

// The log forgets what was taken or dropped a month ago, however much that is. What's
// pending or dead stays, and what was resent counts from then on.
func TestPrune(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	for range 6 {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	stop := d.work(d.Store)
	d.await(made.ID, "6 delivered")
	stop()
	seqs := column[int64](d, `SELECT seq FROM deliveries ORDER BY seq`)
	// One each is dropped, dead, pending, resent, young, and as it was.
	d.exec(`UPDATE deliveries SET created_at = now() - interval '31 d', ended_at = now() - interval '30 d 1 h' WHERE seq <> $1`, seqs[4])
	d.exec(`UPDATE deliveries SET status = 'dropped' WHERE seq = $1`, seqs[0])
	d.exec(`UPDATE deliveries SET status = 'dead' WHERE seq = $1`, seqs[1])
	d.exec(`UPDATE delivery_attempts SET status_code = 500, error = 'x' WHERE seq = $1`, seqs[1])
	d.exec(`INSERT INTO dead_letters (letter_id, consumer, journal_id, seq, target, kind, payload, money, reason, attempts, died_at)
		VALUES (gen_random_uuid(), 'webhooks', 1, $1, $2, 'hold.placed', '', false, 'x', 10, now())`, seqs[1], made.ID.String())
	d.exec(`UPDATE deliveries SET status = 'pending', ended_at = NULL, due_at = now() + interval '1 d' WHERE seq = $1`, seqs[2])
	d.exec(`UPDATE deliveries SET ended_at = now() WHERE seq = $1`, seqs[3])
	d.exec(`INSERT INTO deliveries (subscription_id, journal_id, seq, kind, status, created_at, ended_at)
		SELECT $1, 1, 1000 + n, 'hold.placed', 'dropped', now() - interval '31 d', now() - interval '31 d' FROM generate_series(1, $2) n`,
		made.ID, 2*subscribers.MaxPruned+1) // more than goes at once
	d.work(d.process(nil))
	d.await(made.ID, "1 dead, 2 delivered, 1 pending")
	left := column[int64](d, `SELECT seq FROM deliveries ORDER BY seq`)
	if got, want := fmt.Sprint(left), fmt.Sprint(seqs[1:5]); got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if got := fmt.Sprint(column[int64](d, `SELECT DISTINCT seq FROM delivery_attempts ORDER BY seq`)); got != fmt.Sprint(left) {
		t.Errorf("attempts are left of %s, deliveries of %d", got, left)
	}
}
