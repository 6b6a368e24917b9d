package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/fault"
)

func TestWhatAnErrorMeans(t *testing.T) {
	server := func(code, severity string) error {
		return fmt.Errorf("exchange: %w", &pgconn.PgError{Code: code, SeverityUnlocalized: severity})
	}
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"a check refused a row":      {server("23514", "ERROR"), Failed},
		"a privilege is missing":     {server("42501", "ERROR"), Failed},
		"text isn't JSON":            {server("22P02", "ERROR"), Failed},
		"serialization failure":      {server("40001", "ERROR"), Transient},
		"deadlock":                   {server("40P01", "ERROR"), Transient},
		"lock timeout":               {server("55P03", "ERROR"), Transient},
		"an administrator's stop":    {server("57P01", "FATAL"), Lost},
		"a crash of another backend": {server("57P02", "FATAL"), Lost},
		"starting up":                {server("57P03", "FATAL"), Lost},
		"too many connections":       {server("53300", "FATAL"), Lost},
		"disk full":                  {server("53100", "ERROR"), Lost},
		"a standby answered":         {server("25006", "ERROR"), Lost},
		"idle for too long":          {server("25P03", "FATAL"), Lost},
		"any fatal error":            {server("XX000", "FATAL"), Lost},
		"the connection ended":       {io.ErrUnexpectedEOF, Lost},
		"the network":                {&net.OpError{Op: "read", Err: errors.New("reset")}, Lost},
		"our own deadline":           {fmt.Errorf("read: %w", context.DeadlineExceeded), Lost},
		"a value pgx can't encode":   {errors.New("unable to encode"), Failed},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%s is %d, want %d", name, got, c.want)
		}
	}
}

func TestWhatCallersSee(t *testing.T) {
	if Fault(nil) != nil {
		t.Error("nil became an error")
	}
	lost := fault.As(Fault(io.EOF))
	if !errors.Is(lost, ErrUnavailable) || lost.RetryAfter == 0 || !errors.Is(lost, io.EOF) {
		t.Errorf("a lost connection: %+v", lost)
	}
	if err := Fault(errors.New("bug")); !errors.Is(err, fault.ErrInternal) || fault.As(err).Detail != "" {
		t.Errorf("what nobody foresaw: %v", err)
	}
	own := ErrUnavailable.Because("x")
	if Fault(own) != error(own) {
		t.Error("an error that has a code got another")
	}
}
