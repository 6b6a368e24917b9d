package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/service"
)

// connectBus connects to NATS, or starts one in this process. One that is away is told by
// /readyz, and doesn't keep us from serving: the connection is made when it's there.
func (o *serveOptions) connectBus(ctx context.Context, log *slog.Logger) (closeBus func(), err error) {
	switch {
	case o.natsURL != "" && o.natsDir != "":
		return nil, usagef("nats-url, nats-dir: one of them")
	case o.natsDir != "":
		return o.startBus(ctx, log)
	case o.natsURL == "":
		return func() {}, nil
	}
	wrong := usagef("nats-url: not a NATS URL such as nats://host:4222") // an error may quote a password
	for server := range strings.SplitSeq(o.natsURL, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return nil, wrong
		}
	}
	o.config.NATS, err = nats.Connect(o.natsURL, append(service.BusOptions(), nats.RetryOnFailedConnect(true))...)
	if err != nil {
		return nil, wrong
	}
	return o.config.NATS.Close, nil
}

// startBus starts a NATS of our own, for one process on one machine.
func (o *serveOptions) startBus(ctx context.Context, log *slog.Logger) (closeBus func(), err error) {
	store, err := embedded.LockStore(o.natsDir)
	if err != nil {
		return nil, fmt.Errorf("nats-dir: %w", err)
	}
	unlock := func() {
		if err := store.Close(); err != nil {
			log.Warn("the folder of NATS wasn't unlocked", slog.Any("error", err))
		}
	}
	notice := func(line string) { log.Warn("nats", slog.String("notice", line)) }
	bus, err := embedded.StartNATS(ctx, embedded.NATSOptions{Dir: store.Dir(), Notice: notice})
	if err != nil {
		unlock()
		return nil, fmt.Errorf("nats-dir: %w", err)
	}
	o.config.NATS, err = bus.Connect(service.BusOptions()...)
	if err != nil {
		bus.Stop()
		unlock()
		return nil, err
	}
	return func() { o.config.NATS.Close(); bus.Stop(); unlock() }, nil
}
