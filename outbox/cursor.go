package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// cursor is where a journal stands in a stream.
type cursor struct {
	stream string
	seq    ledger.Seq // of the last entry that the stream has
	place  uint64     // of its message; 0 when the stream has none
	after  uint64     // place of the journal's last message, which may be somebody else's
	lost   ledger.Seq // up to here the stream had the entries before
	ailing bool       // the row tells of a trouble
}

// Faults of a stream or a journal that people must look at; nothing is published meanwhile.
var (
	errForeign = errors.New("the stream has an entry that the journal doesn't: it's another installation's stream, or the database was put back to an earlier state, or somebody else has published")
	errGap     = errors.New("the journal has a gap")
)

// claim takes the lease of a journal, and looks where the stream stands. Nil: another
// process has it.
func (r *Relay) claim(ctx context.Context, journal ledger.JournalID) (*cursor, error) {
	var row cursor
	var suspect bool
	err := r.Pool.QueryRow(ctx, sqlClaim, r.holder, lease, int64(journal)).Scan(&row.seq, &row.stream, &row.place, &suspect, &row.ailing)
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
		at.lost = row.seq
		r.Log.Warn("the stream has lost entries; they're published again", slog.Int64("journal", int64(journal)),
			slog.Int64("after", int64(at.seq)), slog.Int64("up_to", int64(row.seq)))
	}
	at.ailing = row.ailing
	if suspect || at.seq != row.seq || at.stream != row.stream || at.place != row.place {
		if err := r.move(ctx, journal, at); err != nil {
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
	stream, err := r.Bus.Stream(ctx) // after the last message: its beginning isn't older than that
	if err != nil {
		return nil, err
	}
	at := &cursor{stream: stream.ID, after: last.Place}
	if was.stream == stream.ID {
		if was.place == 0 || was.place < stream.First { // it had none, or none that the stream still keeps
			at.seq, at.place = was.seq, was.place
			return at, r.walk(ctx, journal, at)
		}
		own, err := r.Bus.At(ctx, was.place)
		if err != nil {
			return nil, err
		}
		if own.Place != 0 && own.Journal == journal && own.Seq == was.seq {
			at.seq, at.place = own.Seq, own.Place
			if err := r.ours(ctx, own); err != nil {
				return nil, err
			}
			return at, r.walk(ctx, journal, at)
		}
	}
	if last.Place != 0 && last.Seq == 0 {
		r.stranger(last, journal)
		if last, err = r.lastOfOurs(ctx, journal); err != nil {
			return nil, err
		}
	}
	if at.seq, at.place = last.Seq, last.Place; at.place == 0 {
		return at, nil
	}
	return at, r.ours(ctx, last)
}

// walk goes on from a cursor over the journal's messages after it. It keeps where it has come
// to: it may take longer than a lease, and whoever is next goes on from there.
func (r *Relay) walk(ctx context.Context, journal ledger.JournalID, at *cursor) error {
	for place := at.place; place < at.after; {
		mark, err := r.Bus.Next(ctx, journal, place)
		if err != nil || mark.Place == 0 {
			return err
		}
		if place = mark.Place; mark.Seq != at.seq+1 {
			r.stranger(mark, journal)
			continue
		}
		if mark, err = r.leap(ctx, mark, at.after); err != nil {
			return err
		}
		if err := r.ours(ctx, mark); err != nil {
			return err
		}
		at.seq, at.place, place = mark.Seq, mark.Place, mark.Place
		if err := r.move(ctx, journal, at); err != nil {
			return err
		}
	}
	return nil
}

// leap goes from a message over those that lie behind it in one piece, as a batch does, to the
// last of them. When the message so many places on is that many entries on, nothing else has
// room between them: the entries do, and a copy of one comes after it.
func (r *Relay) leap(ctx context.Context, from Mark, end uint64) (Mark, error) {
	grows := true
	for n := uint64(1); n > 0; {
		var to Mark
		var err error
		if from.Place+n <= end {
			if to, err = r.Bus.At(ctx, from.Place+n); err != nil {
				return Mark{}, err
			}
		}
		there := to.Place != 0 && to.Journal == from.Journal && to.Seq == from.Seq+ledger.Seq(n)
		if there {
			from = to
		}
		if grows = grows && there; grows {
			n *= 2
		} else {
			n /= 2
		}
	}
	return from, nil
}

// lastOfOurs looks for the last of a journal's messages that can be ours, from the
// beginning.
func (r *Relay) lastOfOurs(ctx context.Context, journal ledger.JournalID) (own Mark, err error) {
	for place := uint64(0); ; {
		mark, err := r.Bus.Next(ctx, journal, place)
		if err != nil || mark.Place == 0 {
			return own, err
		}
		if place = mark.Place; mark.Seq > 0 {
			own = mark
		}
	}
}

// stranger tells of a message that isn't ours. It's passed over.
func (r *Relay) stranger(m Mark, journal ledger.JournalID) {
	r.Log.Warn("the stream has a message in a journal's place that's none of ours",
		slog.Int64("journal", int64(journal)), slog.Uint64("place", m.Place))
}

// ours checks that a message of the stream is an entry of its journal.
func (r *Relay) ours(ctx context.Context, m Mark) error {
	var id uuid.UUID
	err := r.Pool.QueryRow(ctx, sqlEntryID, int64(m.Journal), m.Seq).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && id != m.ID {
		return fmt.Errorf("%w (message %d: entry %d, %s)", errForeign, m.Place, m.Seq, m.ID)
	}
	if err != nil {
		return fmt.Errorf("look for entry %d: %w", m.Seq, err)
	}
	return nil
}
