package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Limits of webhooks.
const (
	maxWaiting     = 100_000 // deliveries; the ones beyond are lost, as webhooks may be
	maxSenders     = 16      // deliveries under way at once
	deliverTimeout = 10 * time.Second
	reorderDelay   = time.Second // enough for the next ones to overtake
)

// retries are the waits before a webhook that wasn't taken is sent again; after them
// it's given up.
var retries = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// delivery is a webhook on its way.
type delivery struct {
	id      string
	body    []byte
	attempt int
	timer   *time.Timer
}

// mailer sends webhooks in its own time. What waits when it's closed is never sent.
type mailer struct {
	post func(d *delivery) error

	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	waiting map[*delivery]bool
	open    int           // deliveries that wait or are under way
	moved   chan struct{} // closed when a delivery has come to an end or waits again
	closed  bool
}

func newMailer(post func(*delivery) error) *mailer {
	return &mailer{
		post: post, slots: make(chan struct{}, maxSenders),
		waiting: map[*delivery]bool{}, moved: make(chan struct{}),
	}
}

// add takes a webhook to be sent after a while.
func (m *mailer) add(d *delivery, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.open >= maxWaiting {
		return
	}
	m.open++
	m.wait(d, after)
}

// wait is called with the lock held.
func (m *mailer) wait(d *delivery, after time.Duration) {
	m.waiting[d] = true
	d.timer = time.AfterFunc(after, func() {
		if m.claim(d) {
			m.send(d)
		}
	})
}

// claim takes a delivery out of the waiting ones; whoever gets true sends it.
func (m *mailer) claim(d *delivery) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !m.waiting[d] {
		return false
	}
	delete(m.waiting, d)
	m.running.Add(1)
	return true
}

func (m *mailer) send(d *delivery) {
	defer m.running.Done()
	m.slots <- struct{}{}
	err := m.post(d)
	<-m.slots

	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && !m.closed && d.attempt < len(retries) {
		m.wait(d, retries[d.attempt])
		d.attempt++
	} else {
		m.open--
	}
	close(m.moved)
	m.moved = make(chan struct{})
}

// flush sends what waits without waiting, again and again, until every webhook was
// taken or given up.
func (m *mailer) flush(ctx context.Context) error {
	for {
		m.mu.Lock()
		open, moved := m.open, m.moved
		due := make([]*delivery, 0, len(m.waiting))
		for d := range m.waiting {
			due = append(due, d)
		}
		closed := m.closed
		m.mu.Unlock()
		if open == 0 || closed {
			return nil
		}
		for _, d := range due {
			if m.claim(d) {
				d.timer.Stop()
				go m.send(d)
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%d webhooks aren't delivered: %w", open, ctx.Err())
		}
	}
}

// close drops what waits, and waits for what's under way.
func (m *mailer) close() {
	m.mu.Lock()
	m.closed = true
	for d := range m.waiting {
		d.timer.Stop()
	}
	m.mu.Unlock()
	m.running.Wait()
}

// announce sends a webhook for each operation of a change. Called with the lock held.
func (s *Server) announce(c *change) {
	set := s.settings
	if set.WebhookURL == "" {
		return
	}
	for i, o := range c.Operations {
		body, err := json.Marshal(struct {
			Type      string    `json:"type"`
			Timestamp time.Time `json:"timestamp"`
			Data      shown     `json:"data"`
		}{fmt.Sprintf("%s.%s", o.Kind, o.Status), c.At, c.shown(i)})
		if err != nil {
			panic(err) // it was just written to the file
		}
		id := fmt.Sprintf("evt_%08d_%d", s.book.changes, i)
		copies, after := s.mishaps(set, c.Payment.Method, id)
		for range copies {
			s.mail.add(&delivery{id: id, body: body}, after)
		}
	}
}

// mishaps draws how often a webhook is sent, and how late.
func (s *Server) mishaps(set Settings, method, id string) (copies int, after time.Duration) {
	hit := func(what string, rate float64) bool { return s.luck(what, id) < rate }
	copies = 1
	if hit("lost", set.Rates.WebhookLost) {
		return 0, 0
	}
	if method == methodWebhookTwice || hit("twice", set.Rates.WebhookTwice) {
		copies = 2
	}
	if method == methodWebhookLate || hit("late", set.Rates.WebhookLate) {
		after = milliseconds(set.WebhookDelay)
	}
	if hit("reordered", set.Rates.WebhookReordered) {
		after += reorderDelay
	}
	return copies, after
}

// deliver makes one attempt, signed at its own time. Any 2xx takes the webhook.
func (s *Server) deliver(d *delivery) error {
	url, now := s.webhookTarget()
	ctx, cancel := context.WithTimeout(s.life, deliverTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	s.secrets.Sign(req.Header, d.id, now, d.body)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody) // read to its end, the connection can be used again
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
