package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
)

// target is a system that can be loaded.
type target interface {
	// create makes an event on sale.
	create(ctx context.Context, spec buckets.Spec) error
	// place asks for a hold, on the connection of one client. The outcome is
	// outcomeHeld or a refusal's code; an error is anything else.
	place(ctx context.Context, client int, a ask) (outcome string, err error)
	// peakMB is the most memory that the system's process has had; 0 when unknown.
	peakMB() float64
	// close stops the system; a second one does nothing.
	close() error
}

// open starts the product, where the options want it.
func (r *run) open(ctx context.Context) (target, error) {
	if r.Engine {
		return openEngine(ctx, r.db.url, r.Profile)
	}
	return r.openServer(ctx, Product, r.Profile)
}

// server is a child process under load over HTTP.
type server struct {
	*child
	clients []*load.Client
	bodies  [][]byte // of the request under way, by client
}

// openServer starts a child that serves as a system, and makes the clients.
func (r *run) openServer(ctx context.Context, system System, profile string) (*server, error) {
	command := slices.Concat(r.Server, []string{"--system", string(system), "--profile", profile})
	return startServer(ctx, command, system, r.db.url, r.Stderr, r.Clients)
}

func startServer(ctx context.Context, command []string, system System, databaseURL string, stderr io.Writer, clients int) (*server, error) {
	c, err := startChild(ctx, command, databaseURL, stderr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", system, err)
	}
	s := &server{child: c, clients: make([]*load.Client, clients), bodies: make([][]byte, clients)}
	for i := range s.clients {
		if s.clients[i], err = load.NewClient(c.url); err != nil {
			c.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *server) create(ctx context.Context, spec buckets.Spec) error {
	body, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	a, err := s.clients[0].Do(ctx, http.MethodPost, "/v1/events", "create-"+spec.Event, body)
	if err == nil && a.Status != http.StatusCreated {
		err = fmt.Errorf("%d: %s", a.Status, a.Body)
	}
	return err
}

func (s *server) place(ctx context.Context, client int, a ask) (string, error) {
	b := append(s.bodies[client][:0], `{"customer":"`...)
	b = append(b, a.customer...)
	b = append(b, `","items":[{"tier":"`+tier+`","quantity":`...)
	b = strconv.AppendInt(b, a.quantity, 10)
	b = append(b, `}]}`...)
	s.bodies[client] = b
	answer, err := s.clients[client].Do(ctx, http.MethodPost, "/v1/events/"+a.event+"/holds", a.key, b)
	switch {
	case err != nil:
		return "", err
	case answer.Status == http.StatusCreated:
		return outcomeHeld, nil
	case answer.Status == http.StatusConflict:
		return answer.Code(), nil
	}
	return "", fmt.Errorf("%d %s", answer.Status, answer.Code())
}

// ready returns when the server says that it can do its work.
func (s *server) ready(ctx context.Context) error {
	a, err := s.clients[0].Do(ctx, http.MethodGet, "/readyz", "", nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("not ready: %d: %s", a.Status, strings.TrimSpace(string(a.Body)))
	}
	return err
}

func (s *server) close() error {
	for _, c := range s.clients {
		c.Close()
	}
	return s.child.close()
}

// engine is the product in this process, without HTTP.
type engine struct {
	service *service.Service
	stop    func()
}

func openEngine(ctx context.Context, url, profile string) (*engine, error) {
	stop, err := startProfile(profile)
	if err != nil {
		return nil, err
	}
	s, err := service.Start(ctx, productConfig(url))
	if err != nil {
		stop()
		return nil, err
	}
	return &engine{s, stop}, nil
}

func (e *engine) create(ctx context.Context, spec buckets.Spec) error {
	_, err := e.service.Events.Create(ctx, principal, "create-"+spec.Event, spec)
	return err
}

func (e *engine) place(ctx context.Context, _ int, a ask) (string, error) {
	_, err := e.service.Holds.Place(ctx, principal, a.key, a.event, a.request())
	f := fault.As(err)
	switch {
	case err == nil:
		return outcomeHeld, nil
	case f != nil && f.Kind == fault.Conflict:
		return f.Code, nil
	}
	return "", err
}

func (a *ask) request() holds.Request {
	return holds.Request{
		Customer: a.customer,
		Items:    []holds.Line{{Tier: tier, Quantity: ledger.Amount(a.quantity)}},
	}
}

func (e *engine) peakMB() float64 { return peakMB("self") }

func (e *engine) close() error {
	if e.service == nil {
		return nil
	}
	err := e.service.Close(context.Background()) // bounded by its own time to drain
	e.stop()
	e.service = nil
	return err
}
