package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// The reads below are for reports: they go over a provider's operations of all journals.

// ByID reads a provider's operations by their ids, in any state.
func (s *Store) ByID(ctx context.Context, provider string, ids []uuid.UUID) ([]*Operation, error) {
	journals, keys := make([]int64, len(ids)), make([][16]byte, len(ids))
	for i, id := range ids {
		journal, _ := ledger.JournalOf(id) // of an id that isn't ours: 0, where no operation is
		journals[i], keys[i] = int64(journal), id
	}
	return s.report(ctx, sqlByID, provider, journals, keys)
}

// OfPayments reads all operations of payments, by the provider's references.
func (s *Store) OfPayments(ctx context.Context, provider string, payments []string) ([]*Operation, error) {
	return s.report(ctx, sqlOfPayments, provider, payments)
}

// Moved reads the operations that changed a provider's balance, by the provider's clock
// at or after one time and before another, in the order of that time.
func (s *Store) Moved(ctx context.Context, provider string, from, to time.Time) ([]*Operation, error) {
	return s.report(ctx, sqlMoved, provider, from, to)
}

// Taken tells whether the operation is an authorization that took the money.
func (op *Operation) Taken() bool { return op.Kind == payments.Authorize && op.taken > 0 }

func (s *Store) report(ctx context.Context, sql string, args ...any) ([]*Operation, error) {
	rows, _ := s.Reads.Query(ctx, sql, args...) // its error comes with the rows
	list, err := pgx.CollectRows(rows, scanOperation)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read operations: %w", err))
	}
	for _, op := range list {
		if op.Taken() {
			op.Amount.Amount = op.taken
		}
	}
	return list, nil
}
