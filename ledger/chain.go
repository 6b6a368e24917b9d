package ledger

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// journalHead is where a journal says it stands.
type journalHead struct {
	journal JournalID
	seq     Seq
	hash    Hash
}

// walk goes through entries and postings side by side, both in order.
type walk struct {
	legs  pgx.Rows
	last  map[JournalID]Hash // hash of the last entry seen, as stored
	ahead struct {
		journal JournalID
		seq     Seq
		Posting
	}
	loaded bool // ahead has a posting that isn't an entry's yet
	buf    []byte
}

// entry checks the entry that rows are at.
func (w *walk) entry(rows pgx.Rows, violated func(string)) error {
	var e Entry
	var digest, hash []byte
	err := rows.Scan(&e.Journal, &e.Seq, &e.ID, &e.Kind, &e.At, &e.Principal, &digest, &e.Data, &hash)
	if err != nil {
		return err
	}
	copy(e.Digest[:], digest)
	copy(e.Hash[:], hash)
	if e.Postings, err = w.postings(e.Journal, e.Seq); err != nil {
		return err
	}
	var sum Hash
	if sum, w.buf = e.chain(w.last[e.Journal], w.buf); sum != e.Hash {
		violated(fmt.Sprintf("journal %d entry %d: its hash isn't that of what it records", e.Journal, e.Seq))
	}
	w.last[e.Journal] = e.Hash
	return nil
}

// postings gives the postings of an entry, and skips those of entries that aren't
// there, which another check names.
func (w *walk) postings(journal JournalID, seq Seq) (found []Posting, err error) {
	for {
		if !w.loaded {
			if !w.legs.Next() {
				return found, w.legs.Err()
			}
			p := &w.ahead
			if err := w.legs.Scan(&p.journal, &p.seq, &p.Account, &p.Unit, &p.Amount, &p.Balance); err != nil {
				return nil, err
			}
			w.loaded = true
		}
		p := &w.ahead
		if p.journal > journal || p.journal == journal && p.seq > seq {
			return found, nil
		}
		if p.journal == journal && p.seq == seq {
			found = append(found, p.Posting)
		}
		w.loaded = false
	}
}
