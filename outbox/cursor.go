package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// cursor is where a journal stands in a stream.
type cursor struct {
	stream  string
	seq     ledger.Seq // of the last entry that the stream has
	place   uint64     // of its message; 0 when the stream has none
	after   uint64     // place of the journal's last message, which may be somebody else's
	reached ledger.Seq // up to here a stream had the entries before
	ailing  bool       // the row tells of a trouble
}

// Faults of a stream or a journal that people must look at; nothing is published meanwhile.
var (
	errForeign = errors.New("the stream has an entry that the journal doesn't: it's another installation's stream, or the database was put back to an earlier state, or somebody else has published")
	errGap     = errors.New("the journal has a gap")
	errUnshown = errors.New("the stream doesn't show all it has")
)

// claim takes the lease of a journal, and looks where the stream stands. Nil: another
// process has it.
func (r *Relay) claim(ctx context.Context, journal ledger.JournalID) (*cursor, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var row cursor
	var suspect bool
	err := r.Pool.QueryRow(limited, sqlClaim, r.holder, lease, int64(journal)).
		Scan(&row.seq, &row.stream, &row.place, &row.reached, &suspect, &row.ailing)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease: %w", err)
	}
	at, err := r.locate(ctx, journal, row)
	if err != nil {
		return nil, fmt.Errorf("look at the stream: %w", err)
	}
	if at.seq < row.seq {
		r.Log.Warn("the stream has lost entries; they're published again", slog.Int64("journal", int64(journal)),
			slog.Int64("after", int64(at.seq)), slog.Int64("up_to", int64(row.seq)))
	}
	at.reached, at.ailing = row.reached, row.ailing
	if suspect || at.seq != row.seq || at.stream != row.stream || at.place != row.place {
		if err := r.move(ctx, journal, at, sqlMove); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// locate looks where the stream stands, given where it stood. Only messages that go on from
// there are taken for ours: somebody else may have published to the journal's subjects, and
// be it copies of our own.
func (r *Relay) locate(ctx context.Context, journal ledger.JournalID, was cursor) (*cursor, error) {
	last, err := r.Bus.Last(ctx, journal)
	if err != nil {
		return nil, err
	}
	var own Mark
	if was.place > 0 {
		if own, err = r.Bus.At(ctx, was.place); err != nil {
			return nil, err
		}
	}
	stream, err := r.Bus.Stream(ctx) // after the messages: what has become too old until then is before its beginning
	if err != nil {
		return nil, err
	}
	at := &cursor{stream: stream.ID, after: last.Place}
	stands, err := r.stands(ctx, journal, was, own, stream)
	if err != nil {
		return nil, err
	}
	if stands { // else it's looked for from the beginning
		at.seq, at.place = was.seq, was.place
	}
	if at.place < at.after {
		return at, r.walk(ctx, journal, at)
	}
	return at, nil
}

// stands tells whether the stream still has what a cursor says, given the message at its
// place, or may have let it go as too old. The error is errForeign when another entry is
// there.
func (r *Relay) stands(ctx context.Context, journal ledger.JournalID, was cursor, own Mark, stream Stream) (bool, error) {
	if was.stream != stream.ID {
		return false, nil
	}
	if was.place == 0 || was.place < stream.First { // it had none, or none that the stream still keeps
		return true, nil
	}
	if own.Journal != journal || own.Seq != was.seq {
		return false, nil
	}
	genuine, err := r.genuine(ctx, own)
	if err == nil && !genuine {
		err = foreign(own)
	}
	return true, err
}

// walk goes on from a cursor over the journal's messages after it. It notes how far it has
// come: it may take longer than a lease, and whoever is next goes on from there.
func (r *Relay) walk(ctx context.Context, journal ledger.JournalID, at *cursor) error {
	if err := r.move(ctx, journal, at, sqlNote); err != nil { // what was asked so far took its time
		return err
	}
	begun := false
	seen := at.place
	err := r.Bus.Read(ctx, journal, at.place, func(marks []Mark) (err error) {
		if !begun {
			if begun, err = r.begin(ctx, at, marks); err != nil {
				return err
			}
		}
		if err := r.follow(ctx, journal, at, marks); err != nil {
			return err
		}
		seen = marks[len(marks)-1].Place
		return r.move(ctx, journal, at, sqlNote)
	})
	if err == nil && seen < at.after {
		err = errUnshown // a replica may be behind the one that told of the last message
	}
	at.after = max(at.after, seen)
	return err
}

// begin tells whether messages go on from a cursor. When those that did have become too old,
// it puts the cursor before the first that's an entry further on.
func (r *Relay) begin(ctx context.Context, at *cursor, marks []Mark) (bool, error) {
	i := slices.IndexFunc(marks, func(m Mark) bool { return m.Seq > at.seq })
	if i < 0 {
		return false, nil
	}
	if marks[i].Seq == at.seq+1 {
		return true, nil
	}
	stream, err := r.Bus.Stream(ctx)
	if err != nil || stream.First <= at.place+1 {
		return false, err
	}
	for _, m := range marks[i:] {
		if m.Seq <= at.seq {
			continue
		}
		genuine, err := r.genuine(ctx, m)
		if err != nil {
			return false, err
		}
		if genuine || m.Seq == at.seq+1 {
			at.seq = m.Seq - 1
			return true, nil
		}
	}
	return false, nil
}

// follow moves a cursor over messages: those that have the next entry. Others are passed
// over; errForeign tells of one that has another entry in its place.
func (r *Relay) follow(ctx context.Context, journal ledger.JournalID, at *cursor, marks []Mark) error {
	ids, err := r.ids(ctx, journal, at.seq+1, at.seq+ledger.Seq(len(marks)))
	if err != nil {
		return err
	}
	strangers := 0
	for _, m := range marks {
		if m.Seq != at.seq+1 {
			strangers++
			continue
		}
		if id, ok := ids[m.Seq]; !ok || id != m.ID {
			return foreign(m)
		}
		at.seq, at.place = m.Seq, m.Place
	}
	if strangers > 0 {
		r.Log.Warn("the stream has messages in a journal's place that are none of ours", slog.Int64("journal", int64(journal)),
			slog.Int("messages", strangers), slog.Uint64("up_to", marks[len(marks)-1].Place))
	}
	return nil
}

// foreign says what's wrong with a message.
func foreign(m Mark) error {
	return fmt.Errorf("%w (message %d: entry %d, %s)", errForeign, m.Place, m.Seq, m.ID)
}

// genuine tells whether a message is an entry of its journal.
func (r *Relay) genuine(ctx context.Context, m Mark) (bool, error) {
	if m.Seq == 0 {
		return false, nil
	}
	ids, err := r.ids(ctx, m.Journal, m.Seq, m.Seq)
	return ids[m.Seq] == m.ID, err
}

// ids reads the ids of a journal's entries.
func (r *Relay) ids(ctx context.Context, journal ledger.JournalID, from, to ledger.Seq) (map[ledger.Seq]uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	rows, err := r.Pool.Query(ctx, sqlEntryIDs, int64(journal), from, to)
	if err != nil {
		return nil, fmt.Errorf("look for entries: %w", err)
	}
	ids := make(map[ledger.Seq]uuid.UUID)
	var seq ledger.Seq
	var id uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&seq, &id}, func() error { ids[seq] = id; return nil }); err != nil {
		return nil, fmt.Errorf("look for entries: %w", err)
	}
	return ids, nil
}
