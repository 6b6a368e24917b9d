package service

import (
	"time"

	"github.com/nats-io/nats.go"
)

// reconnectWait is the pause between tries to reach a NATS that has gone. Nobody but the
// journals waits for it.
const reconnectWait = 250 * time.Millisecond

// BusOptions are those of every connection that's published over, such as Config.NATS. It's
// tried again for good.
func BusOptions() []nats.Option {
	return []nats.Option{
		nats.Name("tierledger"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(-1), // what can't be sent is known at once, and published later
	}
}
