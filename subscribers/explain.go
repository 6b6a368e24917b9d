package subscribers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// explain says for people why there was no answer, by the kind of what went wrong. Whoever
// may read it is an operator of subscriptions, not of this network: so it has no addresses,
// neither ours nor those that names have, and no URL, which may have secrets in it. within
// is how long the call could last.
func explain(err error, within time.Duration) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var plain tls.RecordHeaderError
	var timed net.Error
	switch {
	case errors.Is(err, ErrAddressNotAllowed):
		return ErrAddressNotAllowed.Code + ": the host's address isn't one of the public internet"
	case errors.As(err, &name) && name.IsNotFound:
		return "the host's name can't be found"
	case errors.As(err, &name):
		return "the host's name couldn't be looked up"
	case dialling(err) && errors.As(err, &timed) && timed.Timeout():
		return fmt.Sprintf("no connection within %s", min(dialTimeout, within.Round(time.Second)))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", within.Round(time.Second))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case dialling(err):
		return "the host can't be reached"
	case errors.As(err, &certificate):
		return "the certificate isn't good: " + certificate.Err.Error()
	case errors.As(err, &alert):
		return "TLS was refused: " + alert.Error()
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "the server doesn't speak TLS"
	case errors.As(err, &timed) && timed.Timeout():
		return fmt.Sprintf("TLS took longer than %s", dialTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection ended before there was an answer"
	}
	return "there was no answer that can be understood"
}

// dialling tells whether there was no connection yet.
func dialling(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// inner gives all that's known of why there was no answer, without the URL.
func inner(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return clip(err.Error())
}
