package buckets

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Allotments lists the allotments of an event in the order of their names.
func (s *Store) Allotments(ctx context.Context, event string) ([]*Allotment, error) {
	home, err := s.Journal(ctx, event)
	if err != nil {
		return nil, err
	}
	return s.allotments(ctx, home)
}

func (s *Store) allotments(ctx context.Context, home ledger.JournalID) ([]*Allotment, error) {
	rows, err := s.reads.Query(ctx, sqlAllotments, int64(home))
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read allotments of journal %d: %w", home, err))
	}
	list, err := pgx.CollectRows(rows, scanAllotment)
	return list, pg.Fault(err)
}

// Allot makes an allotment with its access codes, without tickets: those are moved to it.
// The receipt's data is the allotment. Errors: ErrEventNotFound, ErrInvalidRequest with the
// field, ErrAllotmentExists, ErrCodeExists, and those of ledger.Do.
func (s *Store) Allot(ctx context.Context, principal, key, event string, spec AllotmentSpec) (ledger.Receipt, error) {
	journal, err := s.Journal(ctx, event)
	if err == nil {
		err = spec.normalize()
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	c, err := ledger.NewCommand(journal, principal, key, KindAllotmentOpened, spec, &allot{&spec})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// AddCodes adds access codes to an allotment. The receipt's data has them. Errors:
// ErrEventNotFound, ErrInvalidRequest with the field, ErrAllotmentNotFound,
// ErrAllotmentClosed, ErrCodeExists, and those of ledger.Do.
func (s *Store) AddCodes(ctx context.Context, principal, key, event, allotment string, codes []CodeSpec) (ledger.Receipt, error) {
	journal, err := s.Journal(ctx, event)
	if err == nil && len(codes) == 0 {
		err = fault.BadField("codes", "names none")
	}
	if err == nil {
		err = normalizeCodes(codes)
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		Allotment string
		Codes     []CodeSpec
	}{allotment, codes}
	c, err := ledger.NewCommand(journal, principal, key, KindCodesAdded, parameters, &addCodes{allotment, codes})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// CloseAllotment ends an allotment; one that was closed stays as it is. The receipt's data
// is the allotment. Its free tickets return with the next batch of each lane. Errors:
// ErrEventNotFound, ErrInvalidRequest with the field, ErrAllotmentNotFound,
// ErrVersionConflict, and those of ledger.Do.
func (s *Store) CloseAllotment(ctx context.Context, principal, key, event, allotment, reason string, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	journal, err := s.Journal(ctx, event)
	if err == nil && (reason == "" || len(reason) > MaxReason) {
		err = fault.BadField("reason", "must have 1 to %d bytes", MaxReason)
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		Allotment, Reason string
		IfMatch           *ledger.Seq
	}{allotment, reason, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, KindAllotmentClosed, parameters,
		&closeAllotment{allotment, reason, ifMatch})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// Leftovers lists the journals in which allotments that have ended have tickets left: a
// batch there returns them.
func (s *Store) Leftovers(ctx context.Context) ([]ledger.JournalID, error) {
	rows, err := s.reads.Query(ctx, sqlLeftovers, int64(ledger.System))
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find ended allotments: %w", err))
	}
	journals, err := pgx.CollectRows(rows, pgx.RowTo[ledger.JournalID])
	return journals, pg.Fault(err)
}
