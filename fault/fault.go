// Package fault is how tierledger says no: a small set of kinds, many stable
// codes, and the facts a caller needs to act on the refusal.
//
// A package declares the codes it may answer with as values of *Def and makes
// errors from them; the edge (HTTP, command line) maps kinds to its own terms.
// A *Def is itself an error, so errors.Is(err, holds.ErrSoldOut) works on any
// error made from it, however it was wrapped.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of no it is, and so what the caller should do next.
type Kind uint8

// The kinds, each with the remedy it implies.
const (
	Internal        Kind = iota // a bug or an unexpected failure of ours: report it
	Invalid                     // the request can't be right: change it
	Unauthenticated             // say who you are
	Declined                    // the payment provider said no: pay another way
	Forbidden                   // somebody else may do this
	NotFound                    // there's no such thing
	Gone                        // it isn't kept any more: start from what is there now
	Conflict                    // right request, wrong state: look again, then decide
	Precondition                // the caller's view is stale: reload it
	Unprocessable               // well formed, but contradicts itself or the past
	TooMany                     // slow down, then repeat
	Unavailable                 // nothing wrong with the request: repeat it later
)

// Def is one stable code. Codes are snake_case, never reused, never renamed.
type Def struct {
	Kind  Kind
	Code  string
	Title string // one short sentence, the same for every occurrence
}

// Error makes a Def usable as a target of errors.Is.
func (d *Def) Error() string { return d.Code }

// Because makes an error of this code with a sentence about this occurrence.
func (d *Def) Because(format string, args ...any) *Error {
	return &Error{Def: d, Detail: fmt.Sprintf(format, args...)}
}

// Field is one fact that goes with an error, named as callers see it.
type Field struct {
	Name  string
	Value any
}

// Error is one occurrence of a code.
type Error struct {
	*Def
	Detail     string
	Fields     []Field
	RetryAfter time.Duration // 0: the caller needn't wait
	Cause      error         // for logs, never shown to callers
}

// With adds a fact; facts keep their order.
func (e *Error) With(name string, value any) *Error {
	e.Fields = append(e.Fields, Field{name, value})
	return e
}

// After says when a repeat makes sense.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// From keeps the error that led to this one, for the log.
func (e *Error) From(cause error) *Error {
	e.Cause = cause
	return e
}

// Error gives code, detail and cause in one line.
func (e *Error) Error() string {
	s := e.Code
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap lets errors.Is find the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Def}
	}
	return []error{e.Def, e.Cause}
}

// As finds the *Error in err's chain; nil when err isn't one of ours.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Codes that any operation may answer with.
var (
	ErrInternal       = &Def{Internal, "internal", "The service failed unexpectedly."}
	ErrInvalidRequest = &Def{Invalid, "invalid_request", "The request isn't valid."}
)

// ErrSamePerson is the code of what needs two people.
var ErrSamePerson = &Def{Forbidden, "same_person", "Whoever asked for it can't decide on it."}

// BadField is ErrInvalidRequest about one field of the request.
func BadField(field, format string, args ...any) *Error {
	e := ErrInvalidRequest.Because("%s: %s", field, fmt.Sprintf(format, args...))
	return e.With("field", field)
}
