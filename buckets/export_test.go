package buckets

import (
	"context"

	"github.com/tierledger/tierledger/ledger"
)

// CreateOnly does the first step of Create, as a process that dies after it.
func (s *Store) CreateOnly(ctx context.Context, principal, key string, spec Spec) error {
	if err := spec.normalize(); err != nil {
		return err
	}
	c, err := ledger.NewCommand(ledger.System, principal, key, KindEventCreated, spec, &create{&spec})
	if err != nil {
		return err
	}
	_, err = s.ledger.Do(ctx, ledger.System, c)
	return err
}

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlTakenNames":      sqlTakenNames,
	"sqlInsertDirectory": sqlInsertDirectory,
	"sqlBatchEvent":      sqlBatchEvent,
	"sqlInsertEvent":     sqlInsertEvent,
	"sqlBatchTiers":      sqlBatchTiers,
	"sqlInsertTier":      sqlInsertTier,
	"sqlUpdateTier":      sqlUpdateTier,
	"sqlInsertPrice":     sqlInsertPrice,
	"sqlFindJournal":     sqlFindJournal,
	"sqlNameJournal":     sqlNameJournal,
	"sqlCreatedOnly":     sqlCreatedOnly,
	"sqlListEvents":      sqlListEvents,
	"sqlKeepLane":        sqlKeepLane,
	"sqlLayout":          sqlLayout,
	"sqlInTransit":       sqlInTransit,
	"sqlSplitEvents":     sqlSplitEvents,
	"sqlLanesBehind":     sqlLanesBehind,
	"sqlElsewhere":       sqlElsewhere,
	"sqlBatchAllotments": sqlBatchAllotments,
	"sqlKeepAllotment":   sqlKeepAllotment,
	"sqlBatchCodes":      sqlBatchCodes,
	"sqlInsertCodes":     sqlInsertCodes,
	"sqlLeftovers":       sqlLeftovers,
	"sqlFree":            sqlFree,
	"sqlAllotments":      sqlAllotments,
	"sqlFindLanes":       sqlFindLanes,
}
