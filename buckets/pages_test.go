package buckets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Pages of any size have every id once and in order, and no lane is asked in vain.
func TestPagesGoFromLaneToLane(t *testing.T) {
	t.Parallel()
	lanes := []ledger.JournalID{3, 300, 70, 9} // the last has nothing
	kept := make(map[ledger.JournalID][]uuid.UUID)
	var all []uuid.UUID
	for i, lane := range lanes[:3] {
		for n := range 3*i + 1 {
			kept[lane] = append(kept[lane], ledger.NewID(lane, fmt.Sprint(n)))
		}
		slices.SortFunc(kept[lane], byID)
		all = append(all, kept[lane]...)
	}
	slices.SortFunc(all, byID)
	for size := 1; size <= len(all)+1; size++ {
		var got []uuid.UUID
		after := uuid.Nil
		for {
			page, err := buckets.Page(lanes, after, size, func(lane ledger.JournalID, limit int) ([]uuid.UUID, error) {
				if first, _ := ledger.JournalOf(after); limit < 1 || limit > size || lane < first {
					t.Errorf("lane %d was asked for %d after %s", lane, limit, after)
				}
				rest := slices.DeleteFunc(slices.Clone(kept[lane]), func(id uuid.UUID) bool { return byID(id, after) <= 0 })
				return rest[:min(limit, len(rest))], nil
			})
			if err != nil || len(page) > size {
				t.Fatalf("%d: %v %v", size, page, err)
			}
			got = append(got, page...)
			if len(page) < size {
				break
			}
			after = page[len(page)-1]
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d have\n%v, want\n%v", size, got, all)
		}
	}
	failed := errors.New("failed")
	_, err := buckets.Page(lanes, uuid.Nil, 1, func(ledger.JournalID, int) ([]uuid.UUID, error) { return nil, failed })
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}

func byID(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }
