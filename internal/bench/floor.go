package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

// floorBatch is how many holds' rows are inserted and committed at once.
const floorBatch = 500

// EngineClients is how many callers the engine is measured with beside the floor:
// enough for batches of the floor's size, as half of them wait while the others' batch
// is committed.
const EngineClients = 1024

// floor measures what the database alone needs for the rows of holds: inserts of
// many rows on one connection, with nothing read, nothing judged, nobody asking.
func (r *run) floor(ctx context.Context) error {
	if !r.Floor {
		return nil
	}
	if err := r.db.clone(ctx, r.event(blankEvent)); err != nil {
		return err
	}
	pool, err := openClones(ctx, r.db.url, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	f := floorRows{sample: r.sample(), random: rand.NewChaCha8([32]byte{byte(r.Seed)})}
	if err := pool.QueryRow(ctx, sqlOnlyEvent).Scan(nil, &f.journal); err != nil {
		return err
	}
	insert := func(bound func(time.Duration) bool) (n int64, took time.Duration, err error) {
		started := time.Now()
		for bound(time.Since(started)) && err == nil {
			err = pool.SendBatch(ctx, f.next()).Close()
			n += floorBatch
		}
		return n, time.Since(started), err
	}
	if _, _, err := insert(func(d time.Duration) bool { return d < min(warmUpTime, r.Duration/2) }); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	if err := r.db.checkpoint(ctx); err != nil {
		return err
	}
	n, took, err := insert(func(d time.Duration) bool { return d < r.Duration })
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	perS := float64(n) / took.Seconds()
	r.report.RatioToFloor = new(round(r.report.HoldsPerS/perS, 3))
	r.report.Systems = append(r.report.Systems, Result{
		System: "floor", HoldsPerS: round(perS, 1), Ratio: r.report.RatioToFloor,
	})
	return nil
}

// sample is a hold as the product would record it.
func (r *run) sample() holds.Hold {
	at := time.Now().UTC().Truncate(time.Microsecond)
	price := buckets.Money{Amount: 5000, Currency: "USD"}
	n := ledger.Amount(r.PerHold)
	return holds.Hold{
		Event: r.event(hotEvent), Status: holds.Held, CreatedAt: at, ExpiresAt: at.Add(24 * time.Hour),
		Items: []holds.Item{{Tier: tier, Quantity: n, UnitPrice: price, PriceVersion: 1}},
		Total: buckets.Money{Amount: n * price.Amount, Currency: price.Currency},
	}
}

// floorRows makes the rows of one batch after the other. Ids, customers and sizes
// are like the product's; hashes and texts are all the same.
type floorRows struct {
	journal int64
	sample  holds.Hold
	random  *rand.ChaCha8
	seq     int64
}

// next queues the statements that insert the rows of the next batch.
func (f *floorRows) next() *pgx.Batch {
	const n = floorBatch
	f.sample.Customer = fmt.Sprintf("run-%d", f.seq)
	data, _ := json.Marshal(f.sample)
	items, _ := json.Marshal(f.sample.Items)
	hash := make([]byte, 32)
	seqs, ids, customers, codes := make([]int64, n), make([]uuid.UUID, n), make([]string, n), make([]string, n)
	legs := make([]int64, 0, 2*n)
	accounts := make([]string, 0, 2*n)
	for i := range n {
		f.seq++
		seqs[i] = f.seq + 1 // behind the entry that opened the event
		_, _ = f.random.Read(ids[i][:])
		customers[i] = fmt.Sprintf("run-%d", f.seq)
		codes[i] = ledger.HeldBy(customers[i])
		legs = append(legs, seqs[i], seqs[i])
		accounts = append(accounts, ledger.Available, codes[i])
	}
	at, until := f.sample.CreatedAt, f.sample.ExpiresAt
	b := &pgx.Batch{}
	b.Queue(`BEGIN`)
	b.Queue(sqlFloorEntries, f.journal, at, hash, string(data), seqs, ids)
	b.Queue(sqlFloorPostings, f.journal, legs, accounts)
	b.Queue(sqlFloorAccounts, f.journal, codes, seqs)
	b.Queue(sqlFloorHolds, f.journal, at, until, string(items), ids, customers, seqs)
	b.Queue(`COMMIT`)
	return b
}

// Statements of the floor.
const (
	sqlFloorEntries = `
INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
SELECT $1, e.seq, e.id, 'hold.placed', $2, 'bench', $3, $4::json, $3
FROM unnest($5::bigint[], $6::uuid[]) AS e (seq, id)`

	sqlFloorPostings = `
INSERT INTO postings (journal_id, seq, leg, account, unit, amount, balance)
SELECT $1, p.seq, (p.n - 1) % 2, p.account, 'ga', 1, 1
FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS p (seq, account, n)`

	sqlFloorAccounts = `
INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
SELECT $1, a.code, 'ga', 'inventory', 'held', 1, a.version
FROM unnest($2::text[], $3::bigint[]) AS a (code, version)`

	sqlFloorHolds = `
INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
SELECT $1, h.hold_id, h.customer, 'held', $2, $3, $4::json, 5000, h.version
FROM unnest($5::uuid[], $6::text[], $7::bigint[]) AS h (hold_id, customer, version)`
)
