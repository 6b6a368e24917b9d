package bench

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// lockWaits are sums of a process's batches, as its metrics tell them.
type lockWaits struct {
	batches  float64 // that took a journal's lock
	commands float64 // of all batches
	quick    float64 // batches that waited for half a millisecond at most: there was no wait
	waited   float64 // seconds, of all
	read     float64 // seconds, of all batches, waits included
	decide   float64
	write    float64 // the commit included
}

// add adds what came between two looks.
func (w *lockWaits) add(after, before lockWaits) {
	w.batches += after.batches - before.batches
	w.commands += after.commands - before.commands
	w.quick += after.quick - before.quick
	w.waited += after.waited - before.waited
	w.read += after.read - before.read
	w.decide += after.decide - before.decide
	w.write += after.write - before.write
}

// took is the time of all batches, in seconds.
func (w *lockWaits) took() float64 { return w.read + w.decide + w.write }

// lockWaits looks at the metrics of every process.
func (f *fleet) lockWaits(ctx context.Context) ([]lockWaits, error) {
	all := make([]lockWaits, len(f.processes))
	for i, p := range f.processes {
		a, err := p.clients[0].Do(ctx, http.MethodGet, "/metrics", "", nil)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Status, a.Code())
		}
		if err == nil {
			all[i], err = parseWaits(string(a.Body))
		}
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return all, nil
}

// parseWaits reads the metrics that are wanted out of the text of all.
func parseWaits(text string) (w lockWaits, err error) {
	wanted := map[string]*float64{
		`tierledger_lock_wait_seconds_count`:                    &w.batches,
		`tierledger_lock_wait_seconds_sum`:                      &w.waited,
		`tierledger_lock_wait_seconds_bucket{le="0.0005"}`:      &w.quick,
		`tierledger_batch_commands_sum`:                         &w.commands,
		`tierledger_batch_duration_seconds_sum{phase="read"}`:   &w.read,
		`tierledger_batch_duration_seconds_sum{phase="decide"}`: &w.decide,
		`tierledger_batch_duration_seconds_sum{phase="write"}`:  &w.write,
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if to := wanted[name]; to != nil {
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				return w, fmt.Errorf("%s: %w", name, err)
			}
			delete(wanted, name)
		}
	}
	for name := range wanted {
		if !strings.HasPrefix(name, "tierledger_batch_duration") { // no batch yet
			return w, fmt.Errorf("%s is missing", name)
		}
	}
	return w, nil
}
