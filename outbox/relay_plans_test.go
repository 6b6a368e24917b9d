package outbox_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
)

func TestPrepareTheRelaysStatements(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), outbox.RelayStatements, "relay_sql.go")
}

// manyEntries are three journals with 60,000 entries in all.
var manyEntries = []string{
	`INSERT INTO journals (journal_id, seq) SELECT j, 20000 FROM generate_series(1, 3) j`,
	`INSERT INTO entries SELECT j, i, gen_random_uuid(), 'hold.placed', now(), 'tester', sha256('a'), '{}', sha256('b')
	 FROM generate_series(1, 3) j, generate_series(1, 20000) i`,
	`INSERT INTO relays (journal_id, seq, stream, stream_seq) SELECT j, 19990, 'S', j FROM generate_series(1, 3) j`,
}

// The plans of what publishes are made when nothing is there, and kept: however many entries
// a journal has, those after its cursor are found by their key. Statements that look at all
// journals read no entry. (sqlEnd, sqlSuspectTail and sqlLeave are left out: they look at all
// rows of relays, and there's one of a journal.)
func TestPlansMadeForNoEntriesServeMany(t *testing.T) {
	t.Parallel()
	const me = `md5('me')::uuid, '3 seconds'`
	pgtest.Plans{
		Statements: outbox.RelayStatements, Tables: `journals, entries, relays`, Many: manyEntries, MaxPages: 30,
		Commits: map[string]string{
			"sqlBehind":      `(` + me + `, 'S', 256, -1)`,
			"sqlClaim":       `(` + me + `, 1)`,
			"sqlMove":        `(` + me + `, 1, 19991, 'S', 5)`,
			"sqlNote":        `(` + me + `, 1, 19991, 'S', 5)`,
			"sqlTrouble":     `(md5('me')::uuid, 1, 'why')`,
			"sqlUnpublished": `(1, 19990, 501)`,
			"sqlEntryIDs":    `(1, 15000, 15499)`,
			"sqlPatrol":      `(-1, 'S', 8)`,
			"sqlSuspect":     `(2, 'S', 19990)`,
			"sqlBacklog":     ``,
		},
	}.Check(t)
}

// manyJournals are 20,000, all published.
var manyJournals = []string{
	`INSERT INTO journals (journal_id, seq) SELECT j, 1 FROM generate_series(1, 20000) j`,
	`INSERT INTO relays (journal_id, seq, stream, stream_seq) SELECT j, 1, 'S', j FROM generate_series(1, 20000) j`,
}

// However many journals there are, what concerns one, or the next few, is found by its key.
func TestPlansMadeForNoJournalsServeMany(t *testing.T) {
	t.Parallel()
	const me = `md5('me')::uuid, '3 seconds'`
	pgtest.Plans{
		Statements: outbox.RelayStatements, Tables: `journals, entries, relays`, Many: manyJournals, MaxPages: 30,
		Commits: map[string]string{
			"sqlClaim":   `(` + me + `, 777)`,
			"sqlMove":    `(` + me + `, 777, 2, 'S', 30000)`,
			"sqlNote":    `(` + me + `, 777, 2, 'S', 30000)`,
			"sqlTrouble": `(md5('me')::uuid, 777, 'why')`,
			"sqlPatrol":  `(15000, 'S', 8)`,
			"sqlSuspect": `(888, 'S', 1)`,
		},
	}.Check(t)
}
