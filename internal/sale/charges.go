package sale

// charge is what a provider did for one order.
type charge struct {
	times    int   // money was taken, and not given back as failed
	taken    int64 // net of that
	refunded int64
}

// Charges is a settlement report, order by order.
type Charges struct {
	orders map[string]*charge
	// Lost are rows that took money of which the orders know nothing: their operation
	// is none of theirs, or has failed there.
	Lost []Row
	// Ahead is the number of rows whose operation is still open there.
	Ahead int
}

// Charges sorts the report by the orders that it's about. They are all of the store
// that the provider works for.
func (s *Settlement) Charges(orders []Order) Charges {
	c := Charges{orders: map[string]*charge{}}
	type step struct {
		Operation
		order string
		net   int64
		last  Row
	}
	steps := map[string]*step{}
	for i := range orders {
		for _, p := range orders[i].Operations {
			steps[p.ID] = &step{Operation: p, order: orders[i].ID}
		}
	}
	for _, row := range s.Rows {
		at := steps[row.Reference]
		switch {
		case at == nil && (row.takes() || row.Reference != ""):
			c.Lost = append(c.Lost, row)
			continue
		case at == nil:
			continue // the provider's own, such as a chargeback
		}
		to := c.orders[at.order]
		if to == nil {
			to = &charge{}
			c.orders[at.order] = to
		}
		to.count(row)
		if at.open() {
			c.Ahead++
		}
		if row.takes() || row.Type == "capture_failed" {
			at.net += row.Gross
			at.last = row
		}
	}
	for _, at := range steps {
		if at.net > 0 && at.Status != "succeeded" && !at.open() {
			c.Lost = append(c.Lost, at.last)
		}
	}
	return c
}

func (c *charge) count(row Row) {
	switch {
	case row.takes():
		c.times++
		c.taken += row.Gross
	case row.Type == "capture_failed":
		c.times--
		c.taken += row.Gross
	case row.Type == "refund":
		c.refunded -= row.Gross
	}
}

// of gives what was done for an order.
func (c *Charges) of(order string) charge {
	if at := c.orders[order]; at != nil {
		return *at
	}
	return charge{}
}

// Double counts the orders that were charged more than once, and keep more than their
// price.
func (c *Charges) Double(orders []Order) (n int64) {
	for i := range orders {
		at := c.of(orders[i].ID)
		if at.times > 1 && at.taken-at.refunded > orders[i].Total.Amount {
			n++
		}
	}
	return n
}
