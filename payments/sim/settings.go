package sim

import (
	"fmt"
	"net/url"
	"time"
)

// Settings are what POST /control changes while the server runs: fields that a call
// doesn't name stay as they are. Times are in milliseconds.
type Settings struct {
	Rates Rates `json:"rates"`
	// AuthorizeLatency is how long every authorization takes.
	AuthorizeLatency int64 `json:"authorize_latency_ms"`
	// SlowLatency is how long a slow call takes.
	SlowLatency int64 `json:"slow_ms"`
	// HoldAnswer is how long the answer of a call that times out is held: longer than
	// any caller waits.
	HoldAnswer int64 `json:"hold_answer_ms"`
	// LookupLag is how old an operation must be for lookups by the caller's id to see it.
	LookupLag int64 `json:"lookup_lag_ms"`
	// WebhookDelay is how late a late webhook is.
	WebhookDelay int64 `json:"webhook_delay_ms"`
	// ClockOffset is how far this provider's clock is ahead; negative, behind. Days of
	// it make keys expire. A webhook is signed by this clock too.
	ClockOffset int64 `json:"clock_offset_ms"`
	// WebhookURL is where webhooks go; "" sends none.
	WebhookURL string `json:"webhook_url"`
}

// Rates are the shares of calls, decisions and webhooks that go wrong, 0 to 1.
type Rates struct {
	// Of all calls that change something; at most 1 together.
	TimeoutApplied float64 `json:"timeout_applied"` // done, and the answer comes too late
	TimeoutLost    float64 `json:"timeout_lost"`    // not done, and the answer comes too late
	ErrorApplied   float64 `json:"error_applied"`   // done, and answered with 502
	Error          float64 `json:"error"`           // not done, and answered with 502
	Slow           float64 `json:"slow"`

	// Of authorizations by sim_ok; at most 1 together.
	Decline        float64 `json:"decline"`
	RequiresAction float64 `json:"requires_action"`
	// Of captures by sim_ok.
	CaptureFails float64 `json:"capture_fails"`

	// Of webhooks. A reordered one is sent a little later than those after it.
	WebhookLost      float64 `json:"webhook_lost"`
	WebhookTwice     float64 `json:"webhook_twice"`
	WebhookLate      float64 `json:"webhook_late"`
	WebhookReordered float64 `json:"webhook_reordered"`
}

// DefaultSettings are those of a new server: no faults by chance.
func DefaultSettings() Settings {
	return Settings{SlowLatency: 2000, HoldAnswer: 60_000, WebhookDelay: 30_000}
}

const (
	maxWait   = 10 * 60 * 1000                // ms of a latency: no caller waits longer
	maxOffset = 400 * 24 * 60 * 60 * 1000     // ms of lag, delay or offset: a year and some
	noLimit   = "must be 0 to 1"              // of a rate
	overOne   = "can't be more than 1 by sum" // of rates that exclude each other
)

func (s *Settings) validate() error {
	r := s.Rates
	for _, rate := range []struct {
		name  string
		value float64
	}{
		{"timeout_applied", r.TimeoutApplied}, {"timeout_lost", r.TimeoutLost},
		{"error_applied", r.ErrorApplied}, {"error", r.Error}, {"slow", r.Slow},
		{"decline", r.Decline}, {"requires_action", r.RequiresAction}, {"capture_fails", r.CaptureFails},
		{"webhook_lost", r.WebhookLost}, {"webhook_twice", r.WebhookTwice},
		{"webhook_late", r.WebhookLate}, {"webhook_reordered", r.WebhookReordered},
	} {
		if !(rate.value >= 0 && rate.value <= 1) { // also refuses NaN
			return fmt.Errorf("rates.%s: %s", rate.name, noLimit)
		}
	}
	if r.TimeoutApplied+r.TimeoutLost+r.ErrorApplied+r.Error+r.Slow > 1 {
		return fmt.Errorf("rates: timeouts, errors and slow %s", overOne)
	}
	if r.Decline+r.RequiresAction > 1 {
		return fmt.Errorf("rates: decline and requires_action %s", overOne)
	}
	for _, wait := range []struct {
		name       string
		value, max int64
	}{
		{"authorize_latency_ms", s.AuthorizeLatency, maxWait}, {"slow_ms", s.SlowLatency, maxWait},
		{"hold_answer_ms", s.HoldAnswer, maxWait}, {"lookup_lag_ms", s.LookupLag, maxOffset},
		{"webhook_delay_ms", s.WebhookDelay, maxOffset},
	} {
		if wait.value < 0 || wait.value > wait.max {
			return fmt.Errorf("%s: must be 0 to %d", wait.name, wait.max)
		}
	}
	if s.ClockOffset < -maxOffset || s.ClockOffset > maxOffset {
		return fmt.Errorf("clock_offset_ms: must be %d to %d", -int64(maxOffset), int64(maxOffset))
	}
	if s.WebhookURL != "" {
		u, err := url.Parse(s.WebhookURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("webhook_url: must be an http or https URL")
		}
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
