// Package verify recomputes every invariant of the ledger from its journals. It's
// the operator's `tierledger verify`, and the end of every database test.
package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/quota"
	"github.com/tierledger/tierledger/recon"
	"github.com/tierledger/tierledger/seats"
	"github.com/tierledger/tierledger/subscribers"
	"github.com/tierledger/tierledger/tickets"
)

// maxViolations bounds what is kept of one check; the rest is counted.
const maxViolations = 20

// Options say what to verify and who hears of it.
type Options struct {
	Event  string       // all its lanes; "" for every journal
	Report func(Result) // called after each check; may be nil
}

// Result is the outcome of one check.
type Result struct {
	Check      string        `json:"check"`
	Says       string        `json:"says"`
	Violations []string      `json:"violations,omitempty"` // the first, each naming journal and entry or account
	Count      int           `json:"count"`                // of all violations
	Took       time.Duration `json:"took_ns"`
}

// Summary is the outcome of all checks.
type Summary struct {
	OK       bool               `json:"ok"`
	Journal  int64              `json:"journal,omitempty"`  // 0: all
	Journals []ledger.JournalID `json:"journals,omitempty"` // of an event with several lanes, the first lane's first
	Checks   []Result           `json:"checks"`
}

// Run verifies the database behind url, all of one snapshot, reading only. An
// error says that it couldn't be verified, not that it's wrong.
func Run(ctx context.Context, url string, o Options) (Summary, error) {
	pool, err := pg.Open(ctx, pg.Options{URL: url, Name: "tierledger verify", MaxConns: 3, ReadOnly: true, Scans: true})
	if err != nil {
		return Summary{}, err
	}
	defer pool.Close()
	v := verifier{options: o, journals: []*ledger.JournalID{nil}}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if v.tx, err = pool.BeginTx(ctx, snapshot); err != nil {
		return Summary{}, pg.Fault(err)
	}
	defer v.tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	if v.second, err = pool.BeginTx(ctx, snapshot); err != nil {
		return Summary{}, pg.Fault(err)
	}
	defer v.second.Rollback(context.WithoutCancel(ctx))
	if err := v.prepare(ctx); err != nil {
		return Summary{}, pg.Fault(fmt.Errorf("verify: %w", err))
	}
	if o.Event != "" {
		// After the snapshot, so that it has no lane that isn't among them.
		lanes, err := buckets.NewStore(nil, ledger.NewReader(pool), pool).Lanes(ctx, o.Event)
		if err != nil {
			return Summary{}, err
		}
		v.only(lanes)
	}
	if err := v.run(ctx); err != nil {
		return Summary{}, pg.Fault(fmt.Errorf("verify: %w", err))
	}
	return v.summary, nil
}

// verifier is one run: two transactions on one snapshot.
type verifier struct {
	options    Options
	journals   []*ledger.JournalID // each check is asked about each; a nil is all
	tx, second pgx.Tx
	summary    Summary
}

// only limits the run to the lanes of an event.
func (v *verifier) only(lanes []ledger.JournalID) {
	v.journals = nil
	for _, lane := range lanes {
		v.journals = append(v.journals, &lane)
	}
	v.summary.Journal = int64(lanes[0])
	if len(lanes) > 1 {
		v.summary.Journals = lanes
	}
}

// prepare gives both transactions one snapshot, and room and time for whole tables.
func (v *verifier) prepare(ctx context.Context) error {
	var snapshot string
	if err := v.tx.QueryRow(ctx, `SELECT pg_export_snapshot()`).Scan(&snapshot); err != nil {
		return err
	}
	// The name is the server's own; SET takes no parameters.
	if _, err := v.second.Exec(ctx, fmt.Sprintf(`SET TRANSACTION SNAPSHOT '%s'`, snapshot)); err != nil {
		return err
	}
	for _, tx := range []pgx.Tx{v.tx, v.second} {
		for _, set := range []string{`SET LOCAL statement_timeout = 0`, `SET LOCAL work_mem = '128MB'`,
			`SET LOCAL idle_in_transaction_session_timeout = 0`} {
			if _, err := tx.Exec(ctx, set); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) run(ctx context.Context) error {
	v.summary.OK = true
	for _, c := range slices.Concat(ledger.Checks(), buckets.Checks(), seats.Checks(), quota.Checks(), holds.Checks(), cases.Checks(),
		orders.Checks(), recon.Checks(), outbox.Checks(), tickets.Checks(), subscribers.Checks()) {
		err := v.check(c.Name, c.Says, func(journal *ledger.JournalID, violated func(string)) error {
			rows, err := v.tx.Query(ctx, c.SQL, journal)
			if err != nil {
				return err
			}
			var what string
			_, err = pgx.ForEachRow(rows, []any{&what}, func() error { violated(what); return nil })
			return err
		})
		if err != nil {
			return err
		}
	}
	return v.check("hash_chain", "every entry's hash covers the entry and the hash before it",
		func(journal *ledger.JournalID, violated func(string)) error {
			return ledger.CheckChain(ctx, v.tx, v.second, journal, violated)
		})
}

// check runs one check, of each journal in turn, and reports it. What is wrong with an
// event as a whole is found from each of its lanes, and counts once.
func (v *verifier) check(name, says string, find func(journal *ledger.JournalID, violated func(string)) error) error {
	r := Result{Check: name, Says: says}
	started := time.Now()
	told := make(map[string]struct{})
	for _, journal := range v.journals {
		err := find(journal, func(what string) {
			if len(v.journals) > 1 {
				if _, again := told[what]; again {
					return
				}
				told[what] = struct{}{}
			}
			if r.Count++; r.Count <= maxViolations {
				r.Violations = append(r.Violations, what)
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	r.Took = time.Since(started)
	v.summary.OK = v.summary.OK && r.Count == 0
	v.summary.Checks = append(v.summary.Checks, r)
	if v.options.Report != nil {
		v.options.Report(r)
	}
	return nil
}
