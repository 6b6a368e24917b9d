package httpapi

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// command reads what a command needs: its key, and its body into the struct that
// dst points to.
func (c *call) command(dst any) (key string, err error) {
	return c.commandOf(maxBody, func(text []byte) error { return decode(text, dst) })
}

// commandOf is command with a body of at most some bytes, which a function reads.
func (c *call) commandOf(most int64, read func([]byte) error) (key string, err error) {
	if key, err = c.key(); err != nil {
		return "", err
	}
	if err := c.unconditional(); err != nil {
		return "", err
	}
	text, err := c.text(most)
	if err != nil {
		return "", err
	}
	return key, read(text)
}

// conditional reads what a command needs that honours If-Match: its key, and the
// version that the caller has seen; nil when any will do.
func (c *call) conditional() (key string, version *ledger.Seq, err error) {
	if key, err = c.key(); err != nil {
		return "", nil, err
	}
	version, err = c.ifMatch()
	return key, version, err
}

// named reads the id of the path. What can't be an id is nobody's: notFound.
func (c *call) named(variable string, notFound *fault.Def) (uuid.UUID, error) {
	text := c.vars[variable]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.UUID{}.String()) {
		return id, notFound.Because("%q isn't an id", clip(text)).With(variable, clip(text))
	}
	return id, nil
}

// maybeDry reads whether the call is a dry run, and else its key. A dry run is
// remembered under no key.
func (c *call) maybeDry() (dryRun bool, key string, err error) {
	if dryRun, err = c.dryRun(); err != nil || dryRun {
		return dryRun, "", err
	}
	key, err = c.key()
	return false, key, err
}
