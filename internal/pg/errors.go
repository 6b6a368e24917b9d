package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tierledger/tierledger/fault"
)

// ErrUnavailable says that the database can't be asked now; nothing was changed.
var ErrUnavailable = &fault.Def{
	Kind: fault.Unavailable, Code: "database_unavailable",
	Title: "The database can't be reached; nothing was changed.",
}

// Defs lists the codes of this package.
func Defs() []*fault.Def { return []*fault.Def{ErrUnavailable} }

// retryUnavailable is what callers are told to wait: about a server's restart.
const retryUnavailable = 2 * time.Second

// Class says what a failed exchange means for its caller.
type Class uint8

// The classes of failure.
const (
	Failed    Class = iota // a statement was refused: a bug, or data nobody foresaw
	Lost                   // the server is away, ending, or full; an answer may be missing
	Transient              // the server undid the transaction for another's sake: repeat it
)

// Classify sorts an error of a statement, an exchange or a connection attempt.
func Classify(err error) Class {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return classifyState(server)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &connect), errors.As(err, &network),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, pgconn.ErrConnClosed):
		return Lost
	}
	return Failed
}

// classifyState sorts by SQLSTATE (PostgreSQL's appendix A), never by text.
func classifyState(e *pgconn.PgError) Class {
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock timeout
		return Transient
	case "25006", // read-only transaction: a standby answered
		"25P03": // idle in transaction for too long
		return Lost
	}
	switch e.SeverityUnlocalized {
	case "FATAL", "PANIC":
		return Lost
	}
	for _, class := range []string{"08", "53", "57", "58"} { // connection, resources, operator, system
		if strings.HasPrefix(e.Code, class) {
			return Lost
		}
	}
	return Failed
}

// Fault makes the error that callers see: ErrUnavailable when the server is away
// or busy with itself, an internal fault otherwise.
func Fault(err error) error {
	if err == nil || fault.As(err) != nil {
		return err
	}
	if Classify(err) == Failed {
		return fault.ErrInternal.Because("").From(err)
	}
	return ErrUnavailable.Because("repeat the request later").After(retryUnavailable).From(err)
}
