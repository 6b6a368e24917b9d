package load

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestRecorder(t *testing.T) {
	r := NewRecorder()
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			outcome := "held"
			if i%10 == 0 {
				outcome = "sold_out"
			}
			r.Answered(outcome, time.Duration(i+1)*time.Millisecond)
		})
	}
	all.Wait()
	r.Answered("held", time.Hour) // beyond the histogram: its maximum
	if o := r.Outcomes(); o["held"] != 901 || o["sold_out"] != 100 || r.Count("held") != 901 {
		t.Errorf("outcomes %v", o)
	}
	for percentile, want := range map[float64]time.Duration{
		50: 500 * time.Millisecond, 99: 990 * time.Millisecond, 100: maxLatency,
	} {
		if got := r.Latency(percentile); (got - want).Abs() > want/100 {
			t.Errorf("p%v is %s, want about %s", percentile, got, want)
		}
	}
}

func TestRecorderTellsFailuresApart(t *testing.T) {
	r := NewRecorder()
	r.Failed("500 internal")
	for i := range 3 * maxFailures {
		r.Failed(fmt.Sprintf("failure %02d", i/2))
	}
	if n := r.Failed("500 internal"); n != 3*maxFailures+2 || r.Failures() != n {
		t.Errorf("%d failed", n)
	}
	texts := r.FailureTexts()
	if len(texts) != maxFailures+1 || texts[0] != "10 x others" || !slices.Contains(texts, "2 x 500 internal") {
		t.Errorf("%q", texts)
	}
}
