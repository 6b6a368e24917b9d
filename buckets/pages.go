package buckets

import (
	"slices"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

// Page reads a page of what the lanes of an event keep under ids, in the order of the ids.
// An id begins with its journal's number, so each lane's follow those of the lanes whose
// numbers are smaller, and a lane that is made meanwhile comes last. read gives up to limit
// of one journal, those behind the id after if they're in its lane.
func Page[T any](lanes []ledger.JournalID, after uuid.UUID, limit int, read func(lane ledger.JournalID, limit int) ([]T, error)) ([]T, error) {
	first, _ := ledger.JournalOf(after) // 0 for the first page
	var page []T
	for _, lane := range slices.Sorted(slices.Values(lanes)) {
		if lane < first {
			continue
		}
		if len(page) >= limit {
			break
		}
		found, err := read(lane, limit-len(page))
		if err != nil {
			return nil, err
		}
		page = append(page, found...)
	}
	return page, nil
}
