package quota_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/quota"
)

// manyMoves are 500 moves out of each of 100 lanes to the next one, which have all arrived
// but for the last of each lane.
var manyMoves = []string{
	`INSERT INTO quota_moves (journal_id, move_id, status, unit, account, from_lane, any_lane, to_journal, to_lane, to_account, quantity, up_to,
	                          cause, reason, principal, asked_at, moved_at, version)
	 SELECT journal, md5(journal || ' ' || n)::uuid, 'moved', 'ga', 'available', 1, false, journal + 1, 2, 'available', 1, true,
	        'pull', '', 'system', now(), now(), n
	 FROM generate_series(1, 100) journal, generate_series(1, 500) n`,
	`INSERT INTO quota_arrivals (journal_id, move_id, from_journal, unit, account, quantity, at, version)
	 SELECT to_journal, move_id, journal_id, unit, to_account, quantity, moved_at, version
	 FROM quota_moves
	 WHERE version < 500`,
}

// The plans of what the two ends of a move read are made when there are no moves, and kept:
// when there are many, each is still found through its key, and what's under way without a
// look at what has arrived.
func TestPlansMadeForNoMovesServeMany(t *testing.T) {
	t.Parallel()
	committed := map[string]string{
		"sqlBatchMoves": `(9, ARRAY[md5('9 7')::uuid, md5('9 8')::uuid, md5('none')::uuid])`,
		"sqlBatchSent":  `(10, '{9,9,8}', ARRAY[md5('9 7')::uuid, md5('9 500')::uuid, md5('none')::uuid])`,
	}
	read := map[string]string{
		"sqlMove":     `(9, md5('9 7')::uuid)`,
		"sqlUnderWay": `(9, 490, 1000)`,
	}
	pgtest.Plans{
		Statements: quota.Statements, Commits: committed, Reads: read, Many: manyMoves, MaxPages: 100,
		Tables: `quota_moves, quota_arrivals`,
	}.Check(t)
}
