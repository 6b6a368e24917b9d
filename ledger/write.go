package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Writes queues a batch's writes for one round trip.
type Writes struct {
	Journal JournalID
	batch   *pgx.Batch
}

// Queue adds a statement. Its first argument is the journal, args follow.
func (w *Writes) Queue(sql string, args ...any) {
	w.batch.Queue(sql, append([]any{int64(w.Journal)}, args...)...)
}

// queueWrites queues everything that the decisions changed: columns as arrays, a
// statement per table, whatever the size of the batch.
func (b *batch) queueWrites(q *pgx.Batch) {
	s := b.state
	if len(s.entries) == 0 {
		return
	}
	w := &Writes{Journal: s.Journal, batch: q}
	queueEntries(w, s.Now, s.entries)
	queueChangedAccounts(w, s.accounts)
	for _, shelf := range s.shelves {
		shelf.Write(w)
	}
	w.Queue(sqlUpdateJournal, s.seq, s.Now, s.hash[:])
}

// The columns below are of basic types: pgx encodes those without reflection.

func queueEntries(w *Writes, at time.Time, entries []Entry) {
	n := len(entries)
	seqs, ids, kinds := make([]int64, n), make([][16]byte, n), make([]string, n)
	principals, data := make([]string, n), make([]string, n)
	digests, hashes := make([][]byte, n), make([][]byte, n)
	var p struct {
		seqs, amounts, balances []int64
		legs                    []int16
		accounts, units         []string
	}
	for i := range entries {
		e := &entries[i]
		seqs[i], ids[i], kinds[i], principals[i] = int64(e.Seq), e.ID, e.Kind, e.Principal
		data[i], digests[i], hashes[i] = string(e.Data), e.Digest[:], e.Hash[:]
		for leg, posting := range e.Postings {
			p.seqs = append(p.seqs, int64(e.Seq))
			p.legs = append(p.legs, int16(leg))
			p.accounts = append(p.accounts, posting.Account)
			p.units = append(p.units, string(posting.Unit))
			p.amounts = append(p.amounts, int64(posting.Amount))
			p.balances = append(p.balances, int64(posting.Balance))
		}
	}
	w.Queue(sqlInsertEntries, at, seqs, ids, kinds, principals, digests, data, hashes)
	if len(p.seqs) > 0 {
		w.Queue(sqlInsertPostings, p.seqs, p.legs, p.accounts, p.units, p.amounts, p.balances)
	}
}

// columns are accounts as arrays.
type columns struct {
	codes, units, types, controls []string
	balances, versions            []int64
}

func (c *columns) add(a *balance) {
	c.codes = append(c.codes, a.Code)
	c.units = append(c.units, string(a.Unit))
	c.types = append(c.types, string(a.Type))
	c.controls = append(c.controls, a.Control)
	c.balances = append(c.balances, int64(a.Balance))
	c.versions = append(c.versions, int64(a.Version))
}

func (c *columns) queue(w *Writes, sql string) {
	if len(c.codes) > 0 {
		w.Queue(sql, c.codes, c.units, c.types, c.controls, c.balances, c.versions)
	}
}

// queueChangedAccounts queues accounts in the order of their keys, which is the
// order of the index.
func queueChangedAccounts(w *Writes, accounts map[AccountKey]*balance) {
	changed := make([]*balance, 0, len(accounts))
	for _, a := range accounts {
		if a.changed {
			changed = append(changed, a)
		}
	}
	slices.SortFunc(changed, func(a, b *balance) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(string(a.Unit), string(b.Unit)))
	})
	var created, updated columns
	for _, a := range changed {
		if a.created {
			created.add(a)
		} else {
			updated.add(a)
		}
	}
	created.queue(w, sqlInsertAccounts)
	updated.queue(w, sqlUpdateAccounts)
}
