package pgtest

import (
	"sync"

	"github.com/tierledger/tierledger/fault"
)

// Rush lets n callers ask at once, and counts the granted and the refused by code.
func Rush(n int, ask func(i int) error) (granted int, refused map[string]int) {
	errs := make([]error, n)
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() { errs[i] = ask(i) })
	}
	callers.Wait()
	refused = map[string]int{}
	for _, err := range errs {
		if err == nil {
			granted++
		} else if f := fault.As(err); f != nil {
			refused[f.Code]++
		} else {
			refused[err.Error()]++
		}
	}
	return granted, refused
}
