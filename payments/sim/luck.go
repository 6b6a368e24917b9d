package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"

	"github.com/tierledger/tierledger/payments"
)

// luck draws a number from 0 up to 1 for a thing with a name: always the same one for
// the same seed and names, whatever else was drawn.
func (s *Server) luck(names ...string) float64 {
	h := fnv.New64a()
	for _, name := range names {
		h.Write([]byte(name))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(s.seed, h.Sum64())).Float64()
}

// fault is what goes wrong with a call.
type fault uint8

const (
	noFault fault = iota
	timeoutApplied
	timeoutLost
	errorApplied
	errorLost
	slow
)

func (f fault) lost() bool    { return f == timeoutLost || f == errorLost }
func (f fault) applied() bool { return f == timeoutApplied || f == errorApplied }

// faultBy is the fault that a method has with every attempt of a call; first tells that
// the call hasn't been done yet.
func faultBy(kind payments.Kind, method string, first bool) fault {
	switch {
	case kind == payments.Authorize && method == methodTimeoutLost:
		return timeoutLost
	case kind == payments.Authorize && method == methodError:
		return errorLost
	case kind == payments.Authorize && method == methodSlow:
		return slow
	case kind == payments.Authorize && method == methodTimeoutApplied && first,
		kind == payments.Capture && method == methodCaptureTimeout && first:
		return timeoutApplied
	}
	return noFault
}

// faultByChance draws the fault of one attempt.
func (s *Server) faultByChance(r Rates, key string, attempt int) fault {
	x := s.luck("call", key, strconv.Itoa(attempt))
	for _, f := range []struct {
		rate float64
		is   fault
	}{
		{r.TimeoutApplied, timeoutApplied}, {r.TimeoutLost, timeoutLost},
		{r.ErrorApplied, errorApplied}, {r.Error, errorLost}, {r.Slow, slow},
	} {
		if x < f.rate {
			return f.is
		}
		x -= f.rate
	}
	return noFault
}

// unlucky draws whether a decision about sim_ok goes as it would for another method.
func (s *Server) unlucky(r Rates, kind payments.Kind, reference string) string {
	x := s.luck("decision", reference)
	switch {
	case kind == payments.Authorize && x < r.Decline:
		return methodDecline
	case kind == payments.Authorize && x < r.Decline+r.RequiresAction:
		return methodRequiresAction
	case kind == payments.Capture && x < r.CaptureFails:
		return methodCaptureFails
	}
	return ""
}
