package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// The histogram keeps three digits of latencies up to a minute, in 200 kB.
	maxLatency    = time.Minute
	latencyDigits = 3
	// maxFailures is how many different failures are told apart.
	maxFailures = 8
)

// Recorder counts outcomes and keeps latencies. It's safe for concurrent use.
type Recorder struct {
	mu        sync.Mutex
	latencies *hdrhistogram.Histogram // microseconds
	outcomes  map[string]int64
	failures  map[string]int64
	failed    int64
}

// NewRecorder makes an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{
		latencies: hdrhistogram.New(1, maxLatency.Microseconds(), latencyDigits),
		outcomes:  make(map[string]int64),
		failures:  make(map[string]int64),
	}
}

// Answered counts an answer, good or bad news, and keeps how long it took. It
// returns how many had this outcome so far.
func (r *Recorder) Answered(outcome string, took time.Duration) int64 {
	took = min(took, maxLatency)
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.latencies.RecordValue(took.Microseconds()) // never above its maximum
	r.outcomes[outcome]++
	return r.outcomes[outcome]
}

// Failed counts a request that got no answer, or one that nothing explains. What
// it was is told apart for the first few. It returns how many failed so far.
func (r *Recorder) Failed(what string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.failures[what]; !known && len(r.failures) >= maxFailures {
		what = "others"
	}
	r.failures[what]++
	r.failed++
	return r.failed
}

// Count is how many answers had an outcome.
func (r *Recorder) Count(outcome string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcomes[outcome]
}

// Outcomes gives the number of answers by outcome.
func (r *Recorder) Outcomes() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.outcomes)
}

// Failures is how many requests failed.
func (r *Recorder) Failures() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// FailureTexts lists the failures with their numbers, the most frequent first.
func (r *Recorder) FailureTexts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := slices.SortedFunc(maps.Keys(r.failures), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.failures[b], r.failures[a]), cmp.Compare(a, b))
	})
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = fmt.Sprintf("%d x %s", r.failures[kind], kind)
	}
	return texts
}

// Latency gives a percentile of the latencies, 0 to 100; 0 when there are none.
func (r *Recorder) Latency(percentile float64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.latencies.ValueAtPercentile(percentile)) * time.Microsecond
}
