package bench

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

// blockTries is how many blocks of seats the baseline tries to lock, when others are at it.
const blockTries = 8

// pickSeats locks the seats that a claim names or, in order of the rows, the first that
// are free.
func pickSeats(ctx context.Context, tx pgx.Tx, c *claim) (seatRows, error) {
	if c.line.BestAvailable != nil {
		return bestSeats(ctx, tx, c)
	}
	taken, err := lockSeats(ctx, tx, c, c.line.Seats)
	if err != nil {
		return nil, err
	}
	if len(taken) != len(c.line.Seats) {
		return nil, errSeatTaken.Because("there's no such seat")
	}
	var missing []map[string]string
	for _, seat := range taken {
		if seat.state != "available" {
			missing = append(missing, map[string]string{"seat": seat.label, "reason": seat.state})
		}
	}
	if missing != nil {
		return nil, errSeatTaken.Because("%d of %d", len(missing), len(taken)).With("seats", missing)
	}
	return taken, nil
}

// lockSeats locks seats in their order, and gives them in the order of their places.
func lockSeats(ctx context.Context, tx pgx.Tx, c *claim, labels []string) (seatRows, error) {
	rows, err := tx.Query(ctx, sqlLockSeats, c.journal, labels)
	if err != nil {
		return nil, err
	}
	return collectSeats(rows)
}

func collectSeats(rows pgx.Rows) (seatRows, error) {
	seats, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s seatRow, err error) {
		err = row.Scan(&s.label, &s.row, &s.place, &s.tier, &s.state)
		return s, err
	})
	slices.SortFunc(seats, func(a, b seatRow) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.place, b.place)) })
	return seats, err
}

// bestSeats locks free seats side by side; where they may be apart and no block is large
// enough, several smaller ones. It doesn't know the seats that only some may have.
func bestSeats(ctx context.Context, tx pgx.Tx, c *claim) (seatRows, error) {
	best := c.line.BestAvailable
	want := int(best.Quantity)
	var taken seatRows
	for size := want; size > 0 && len(taken) < want; size-- {
		if size < want && !best.AcceptSplit {
			break
		}
		for len(taken)+size <= want {
			block, err := lockBlock(ctx, tx, c, best.Section, best.Tier, size, taken)
			if err != nil {
				return nil, err
			}
			if block == nil {
				break
			}
			taken = append(taken, block...)
		}
	}
	if len(taken) < want {
		return nil, holds.ErrTemporarilyHeld.Because("%d seats were found, %d asked", len(taken), want)
	}
	slices.SortFunc(taken, func(a, b seatRow) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.place, b.place)) })
	return taken, nil
}

// lockBlock locks so many free seats side by side that aren't taken yet; nil when it
// finds none.
func lockBlock(ctx context.Context, tx pgx.Tx, c *claim, section string, tier ledger.Unit, size int, taken seatRows) (seatRows, error) {
	rows, err := tx.Query(ctx, sqlFindBlocks, c.journal, section, string(tier), blockTries, strings.Repeat("a", size))
	if err != nil {
		return nil, err
	}
	type candidate struct{ row, place int }
	candidates, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k candidate, err error) {
		err = row.Scan(&k.row, &k.place)
		return k, err
	})
	if err != nil {
		return nil, err
	}
	for _, k := range candidates {
		if slices.ContainsFunc(taken, func(s seatRow) bool { return s.row == k.row }) {
			continue // the summary doesn't know yet what this transaction takes
		}
		rows, err := tx.Query(ctx, sqlLockFree, c.journal, k.row, k.place, k.place+size)
		if err != nil {
			return nil, err
		}
		block, err := collectSeats(rows)
		if err != nil {
			return nil, err
		}
		if len(block) == size {
			return block, nil
		}
	}
	return nil, nil
}
