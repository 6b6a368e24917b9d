package sale

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// connections is how many requests are under way at a time: plenty for one
// machine, and few enough that it doesn't drown in them.
const connections = 64

// Outcomes of accepted requests; refusals are counted by their code.
const (
	outcomeHeld     = "held"
	outcomeReleased = "released"
	outcomeOrdered  = "ordered"
	outcomeRefund   = "refund"
	outcomeReplayed = "replayed"
)

// api calls the API and keeps count.
type api struct {
	free      chan *load.Client
	commands  *load.Recorder // what changes something, or would have
	checkouts *load.Recorder // likewise, and waits for the provider
}

// newAPI makes the connections; each connects at its first call.
func newAPI(url string) (*api, error) {
	a := &api{free: make(chan *load.Client, connections), commands: load.NewRecorder(), checkouts: load.NewRecorder()}
	for range connections {
		c, err := load.NewClient(url)
		if err != nil {
			return nil, err
		}
		a.free <- c
	}
	return a, nil
}

// close ends the connections; nobody may be calling any more.
func (a *api) close() {
	for range connections {
		(<-a.free).Close()
	}
}

// answer is what the API said.
type answer struct {
	status     int
	code       string // of a refusal
	replayed   bool
	retryAfter time.Duration
	body       []byte
}

// call sends a request on a free connection. An error means that there's no answer.
func (a *api) call(ctx context.Context, method, path, key string, body any) (answer, time.Duration, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return answer{}, 0, err
		}
	}
	// The wait for a connection is the crowd's, not the API's: the clock starts after it.
	client := <-a.free
	defer func() { a.free <- client }()
	started := time.Now()
	got, err := client.Do(ctx, method, path, key, text)
	took := time.Since(started)
	return answer{
		status: got.Status, code: got.Code(), replayed: got.Replayed(), retryAfter: got.RetryAfter(),
		body: append([]byte(nil), got.Body...),
	}, took, err
}

// command sends a request that changes something, and counts its outcome: what it
// did, that it was a repeat, or why it was refused.
func (a *api) command(ctx context.Context, path, key string, body any, outcome string) (answer, error) {
	return a.counted(ctx, a.commands, path, key, body, outcome)
}

// checkout is command for payments.
func (a *api) checkout(ctx context.Context, path, key string, body any) (answer, error) {
	return a.counted(ctx, a.checkouts, path, key, body, outcomeOrdered)
}

func (a *api) counted(ctx context.Context, to *load.Recorder, path, key string, body any, outcome string) (answer, error) {
	got, took, err := a.call(ctx, "POST", path, key, body)
	switch {
	case err != nil:
		return got, err
	case got.status >= 400:
		outcome = got.code
	case got.replayed:
		outcome = outcomeReplayed
	}
	to.Answered(outcome, took)
	return got, nil
}

// outcomes are the numbers of all counted requests by outcome.
func (a *api) outcomes() map[string]int64 {
	all := a.commands.Outcomes()
	for outcome, n := range a.checkouts.Outcomes() {
		all[outcome] += n
	}
	return all
}

// read gets a document.
func (a *api) read(ctx context.Context, path string, into any) error {
	got, _, err := a.call(ctx, "GET", path, "", nil)
	if err != nil {
		return err
	}
	if got.status != 200 {
		return fmt.Errorf("GET %s: %s", path, got)
	}
	return json.Unmarshal(got.body, into)
}

// String is the answer for a report.
func (a answer) String() string {
	if a.code != "" {
		return fmt.Sprintf("%d %s", a.status, a.code)
	}
	return fmt.Sprintf("%d %.200s", a.status, a.body)
}

// returns tells when a refused buyer should come back; false if that's no use.
func (a answer) returns() (time.Time, bool) {
	var when struct {
		RetryAt     time.Time `json:"retry_at"`
		SaleOpensAt time.Time `json:"sale_opens_at"`
	}
	_ = json.Unmarshal(a.body, &when) // what isn't there stays zero
	switch a.code {
	case "temporarily_held":
		return when.RetryAt, true
	case "not_on_sale":
		return when.SaleOpensAt, true
	}
	return time.Now().Add(a.retryAfter), a.retryAfter > 0
}

// hold is a hold as the API tells it.
type hold struct {
	ID        string    `json:"hold_id"`
	Status    string    `json:"status"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expires_at"`
	Items     []item    `json:"items"`
	Total     Money     `json:"total"`
}

// open is the number of tickets that a payment keeps, whose outcome is open.
func (h *hold) open() (n int64) {
	if h.Status != "payment_pending" && h.Status != "reconciling" {
		return 0
	}
	for _, i := range h.Items {
		n += i.Quantity
	}
	return n
}

// availability is where the tickets are at a version.
type availability struct {
	Version int64  `json:"version"`
	Tiers   []tier `json:"tiers"`
}

// tier is where the tickets of a tier are.
type tier struct {
	Tier      string `json:"tier"`
	Capacity  int64  `json:"capacity"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Sold      int64  `json:"sold"`
}

// left is the number of free tickets, over all tiers.
func (a availability) left() (n int64) {
	for _, t := range a.Tiers {
		n += t.Available
	}
	return n
}

// held is the number of held tickets, over all tiers.
func (a availability) held() (n int64) {
	for _, t := range a.Tiers {
		n += t.Held
	}
	return n
}

// taken is the number of seats that are held or sold.
func (a availability) taken() (n int64) {
	for _, t := range a.Tiers {
		if t.Tier == stalls || t.Tier == balcony {
			n += t.Held + t.Sold
		}
	}
	return n
}

// sold is the number of sold tickets, over all tiers.
func (a availability) sold() (n int64) {
	for _, t := range a.Tiers {
		n += t.Sold
	}
	return n
}
