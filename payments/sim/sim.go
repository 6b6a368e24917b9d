package sim

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tierledger/tierledger/payments"
)

// Options configure a Server.
type Options struct {
	// Seed decides all chance.
	Seed uint64
	// Clock is the provider's clock before Settings.ClockOffset; nil is the process's.
	Clock func() time.Time
	// WebhookURL is where webhooks go at first; "" sends none. See SetWebhookURL.
	WebhookURL string
	// Secrets sign webhooks; needed for a WebhookURL.
	Secrets payments.Secrets
	// File keeps the history over a restart, for one server at a time. "" keeps it in
	// memory only: the next server begins anew and uses the same ids again.
	File string
	// Transport carries webhooks; nil is a pool of connections of its own.
	Transport http.RoundTripper
}

// Server is the simulated provider, an http.Handler for its paths; mount it elsewhere
// than at the root with http.StripPrefix. History grows in memory for as long as it lives.
type Server struct {
	seed    uint64
	clock   func() time.Time
	secrets payments.Secrets
	mux     *http.ServeMux
	client  *http.Client
	mail    *mailer
	life    context.Context // ends at Close
	end     context.CancelFunc
	file    *file // nil: in memory only

	mu       sync.Mutex
	book     *book
	settings Settings
	attempts map[string]int // by key: how often a call came since the start
}

// New makes a server, with the history of its file. Close it.
func New(o Options) (*Server, error) {
	s := &Server{
		seed: o.Seed, clock: o.Clock, secrets: o.Secrets, book: newBook(),
		settings: DefaultSettings(), attempts: map[string]int{},
		client: &http.Client{Transport: o.Transport},
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if o.Transport == nil {
		s.client.Transport = &http.Transport{MaxIdleConnsPerHost: maxSenders, IdleConnTimeout: 30 * time.Second}
	}
	if err := s.SetWebhookURL(o.WebhookURL); err != nil {
		return nil, err
	}
	if o.File != "" {
		f, err := openFile(o.File, s.book)
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.mail = newMailer(s.deliver)
	s.mux = s.routes()
	return s, nil
}

// ServeHTTP serves the provider's paths; after Close, only 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.life.Err() != nil {
		refuse(http.StatusServiceUnavailable, "closed", "the provider is shutting down").write(w)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Settings gives the settings in force.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// Configure puts settings in force, for calls and webhooks from now on.
func (s *Server) Configure(set Settings) error {
	return s.update(func(old *Settings) error {
		*old = set
		return nil
	})
}

// SetWebhookURL says where webhooks go from now on; "" sends none.
func (s *Server) SetWebhookURL(url string) error {
	return s.update(func(set *Settings) error {
		set.WebhookURL = url
		return nil
	})
}

var errNoSecrets = errors.New("webhook_url: webhooks need secrets to sign them")

// update changes a copy of the settings, and puts it in force if it's valid.
func (s *Server) update(change func(*Settings) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.settings
	if err := change(&set); err != nil {
		return err
	}
	if err := set.validate(); err != nil {
		return err
	}
	if set.WebhookURL != "" && s.secrets.None() {
		return errNoSecrets
	}
	s.settings = set
	return nil
}

// Flush sends every webhook that waits, also the late ones and the ones to be repeated,
// at once, and returns when each was taken or given up.
func (s *Server) Flush(ctx context.Context) error { return s.mail.flush(ctx) }

// Close lets go of calls whose answers are held, drops webhooks that wait, and closes
// the file. It comes before the shutdown of the HTTP server, which waits for calls.
func (s *Server) Close() error {
	s.end()
	s.mail.close()
	s.client.CloseIdleConnections()
	if s.file == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.f.Close()
}

// now reads the provider's clock, as precisely as it's written. Called with the lock held.
func (s *Server) now() time.Time {
	return s.clock().Add(milliseconds(s.settings.ClockOffset)).UTC().Truncate(time.Microsecond)
}

// commit makes a change part of history and announces it. Called with the lock held.
func (s *Server) commit(c *change) error {
	if s.file != nil {
		if err := s.file.add(c); err != nil {
			return err
		}
	}
	s.book.apply(c)
	s.announce(c)
	return nil
}

// webhookTarget is where a webhook goes, and the time to sign it with.
func (s *Server) webhookTarget() (url string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.WebhookURL, s.now()
}
