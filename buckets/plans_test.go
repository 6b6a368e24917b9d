package buckets_test

import (
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// manyLanes are 2,000 events of 8 lanes with tickets in each, 10
// allotments and as many codes; 400 customers have something in each of the first 100.
var manyLanes = []string{
	`INSERT INTO events (journal_id, event, name, currency, hold_seconds, grace_seconds, organiser, late_payment_policy, created_at, version)
	 SELECT 8 * i + 1, 'e' || i, 'E', 'USD', 300, 300, 'house', 'review', now(), 1
	 FROM generate_series(0, 1999) i`,
	`INSERT INTO event_journals (journal_id, event, event_journal_id, lane)
	 SELECT 0, 'e' || i, 8 * i + lane, lane
	 FROM generate_series(0, 1999) i, generate_series(1, 8) lane`,
	`INSERT INTO lanes (journal_id, home, lane, generation, counts, journals, version)
	 SELECT 8 * i + lane, 8 * i + 1, lane, 1, '{1,8}', ARRAY(SELECT 8 * i + n FROM generate_series(1, 8) n), 2
	 FROM generate_series(0, 1999) i, generate_series(1, 8) lane`,
	`INSERT INTO tiers (journal_id, tier, position, name, price_version, version)
	 SELECT 8 * i + 1, 'ga', 0, 'GA', 2, 1
	 FROM generate_series(0, 1999) i`,
	`INSERT INTO prices (journal_id, tier, price_version, amount, fee, tax_rate)
	 SELECT 8 * i + 1, 'ga', price, 5000, 0, 0
	 FROM generate_series(0, 1999) i, generate_series(1, 2) price`,
	`INSERT INTO allotments (journal_id, allotment, name, code_required, created_at, closed_at, version)
	 SELECT 8 * i + 1, 'a' || n, 'A', true, now(), CASE WHEN i % 100 = 0 THEN now() END, 3
	 FROM generate_series(0, 1999) i, generate_series(1, 10) n`,
	`INSERT INTO access_codes (journal_id, code, allotment, max_uses, version)
	 SELECT 8 * i + 1, 'C' || n, 'a' || n, 3, 3
	 FROM generate_series(0, 1999) i, generate_series(1, 10) n`,
	`INSERT INTO accounts (journal_id, code, unit, type, balance, version)
	 SELECT journal, code, 'ga', 'inventory', 0, 4
	 FROM generate_series(1, 16000) journal, unnest('{available,available:a1,transit,held,sold}'::text[]) code`,
	`INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
	 SELECT journal, 'held:c' || n, 'ga', 'inventory', 'held', 1, 5
	 FROM generate_series(1, 100) journal, generate_series(1, 400) n`,
	`INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
	 SELECT journal, seq, md5(journal || ' ' || seq)::uuid, 'x', now(), 'p', sha256('x'), '{}', sha256('x')
	 FROM generate_series(1, 100) journal, generate_series(1, 200) seq`,
}

// The plans of what a lane's batches read of the event, and of what tells where free tickets
// are, are made when there are none of either, and kept: when there are many, each row is
// still found through its key.
func TestPlansMadeForNoLanesServeMany(t *testing.T) {
	t.Parallel()
	committed := map[string]string{
		"sqlBatchEvent":      `(12)`,
		"sqlBatchTiers":      `(12)`,
		"sqlBatchAllotments": `(12)`,
		"sqlBatchCodes":      `(12, '{C1,C7}')`,
		"sqlElsewhere":       `(12, '{9,10,16}', '{c1,c2,c3}', ARRAY[md5('9 7')::uuid, md5('10 9')::uuid, md5('none')::uuid])`,
		"sqlTakenNames":      `(0, '{e1,e1999}', '{8,9}')`,
	}
	read := map[string]string{ // by every request that a lane sends elsewhere, or has too few for
		"sqlFree":      `(0, 'e1', 'available', 'transit', 'ga')`,
		"sqlLayout":    `(12)`,
		"sqlFindLanes": `(0, 'e1')`,
	}
	pgtest.Plans{
		Statements: buckets.Statements, Commits: committed, Reads: read, Many: manyLanes, MaxPages: 150,
		Tables: `events, event_journals, lanes, tiers, prices, allotments, access_codes, accounts, entries`,
	}.Check(t)
}
