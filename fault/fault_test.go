package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tierledger/tierledger/fault"
)

var errTaken = &fault.Def{Kind: fault.Conflict, Code: "seat_taken", Title: "The seat is taken."}

func TestACodeIsFoundHoweverItWasWrapped(t *testing.T) {
	err := fmt.Errorf("hold: %w", errTaken.Because("seat %d", 7).With("seat", 7).After(time.Second).From(io.EOF))
	if !errors.Is(err, errTaken) || !errors.Is(err, io.EOF) || errors.Is(err, fault.ErrInternal) {
		t.Errorf("%v doesn't unwrap to its code and cause alone", err)
	}
	e := fault.As(err)
	if e == nil || e.Code != "seat_taken" || e.Detail != "seat 7" || e.RetryAfter != time.Second ||
		len(e.Fields) != 1 || e.Fields[0] != (fault.Field{Name: "seat", Value: 7}) {
		t.Errorf("%+v", e)
	}
	if got := e.Error(); got != "seat_taken: seat 7: EOF" {
		t.Errorf("it reads %q", got)
	}
	if fault.As(io.EOF) != nil || fault.As(nil) != nil {
		t.Error("an error that isn't ours was found to be")
	}
}

func TestABadFieldNamesItself(t *testing.T) {
	e := fault.BadField("items[0].quantity", "must be %d", 1)
	if !errors.Is(e, fault.ErrInvalidRequest) || e.Fields[0].Value != "items[0].quantity" || e.Detail != "items[0].quantity: must be 1" {
		t.Errorf("%+v", e)
	}
}
