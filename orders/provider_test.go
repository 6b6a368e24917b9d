package orders_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// letter is a webhook as it was delivered.
type letter struct {
	body   []byte
	header http.Header
}

// traffic is what goes between the shop and the provider: calls that change something,
// counted by their key, and webhooks that the test keeps for later.
type traffic struct {
	down   atomic.Bool // no connection can be made
	mu     sync.Mutex
	calls  map[string]int
	mail   []letter
	before func(*http.Request) bool                             // false: the call isn't carried out, and breaks off
	after  func(*http.Request, *httptest.ResponseRecorder) bool // false: the answer is lost
}

func newTraffic() *traffic { return &traffic{calls: make(map[string]int)} }

var errDown = errors.New("the provider is down")

// transport carries calls, each on a connection of its own.
func (c *traffic) transport() http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.down.Load() {
			return nil, errDown
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
}

func (c *traffic) keep(l letter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mail = append(c.mail, l)
}

// through carries requests to the provider.
func (c *traffic) through(provider http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		c.mu.Lock()
		c.calls[key]++
		before, after := c.before, c.after
		c.mu.Unlock()
		switch {
		case key == "":
			provider.ServeHTTP(w, r)
			return
		case before != nil && !before(r):
			panic(http.ErrAbortHandler)
		case after == nil:
			provider.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		provider.ServeHTTP(answer, r)
		if !after(r, answer) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // a caller that's gone asks again
	})
}

// watch has every call that changes something go by the test.
func (s *shop) watch(before func(*http.Request) bool, after func(*http.Request, *httptest.ResponseRecorder) bool) {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	s.traffic.before, s.traffic.after = before, after
}

// calls tells how often the provider was called under an operation's id.
func (s *shop) calls(operation uuid.UUID) int {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	return s.traffic.calls[operation.String()]
}

// posted tells how many different calls that change something the provider has got.
func (s *shop) posted() int {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	n := len(s.traffic.calls)
	if _, lookups := s.traffic.calls[""]; lookups {
		n--
	}
	return n
}

// letters waits for the provider's webhooks, and takes them out of the mailbox.
func (s *shop) letters() []letter {
	s.Helper()
	s.flush()
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	mail := s.traffic.mail
	s.traffic.mail = nil
	return mail
}

// flush waits until every webhook was taken, and what it sent is done.
func (s *shop) flush() {
	s.Helper()
	if err := s.sim.Flush(s.ctx); err != nil {
		s.Fatal(err)
	}
	s.idle()
}

// deliver gives the shop a webhook, which it must take.
func (s *shop) deliver(l letter) {
	s.Helper()
	if err := s.Orders.Receive(s.ctx, "sim", l.body, l.header); err != nil {
		s.Fatal(err)
	}
	s.idle()
}

// said is an operation as the provider tells of it.
type said map[string]any

// what asks the provider for the operation with an id of ours.
func (s *shop) what(operation uuid.UUID) said {
	s.Helper()
	var found struct {
		Data []said `json:"data"`
	}
	s.decode(s.get("/operations/"+operation.String()), &found)
	if len(found.Data) != 1 {
		s.Fatalf("the provider has %d operations %s", len(found.Data), operation)
	}
	return found.Data[0]
}

// tell delivers a signed webhook that tells of an operation, changed in some fields, a
// while from now by the provider's clock.
func (s *shop) tell(o said, after time.Duration, changes said) {
	s.Helper()
	l := s.letter(o, after, changes)
	s.deliver(l)
}

// letter writes such a webhook.
func (s *shop) letter(o said, after time.Duration, changes said) letter {
	s.Helper()
	at := time.Now().UTC().Add(after)
	told := said{}
	for name, value := range o {
		told[name] = value
	}
	told["updated_at"] = at
	for name, value := range changes {
		if part, ok := value.(said); ok { // of the payment
			whole := said{}
			for name, value := range o[name].(map[string]any) {
				whole[name] = value
			}
			for name, value := range part {
				whole[name] = value
			}
			value = whole
		}
		told[name] = value
	}
	body, err := json.Marshal(map[string]any{"type": fmt.Sprint(told["kind"], ".", told["status"]), "timestamp": at, "data": told})
	if err != nil {
		s.Fatal(err)
	}
	header := http.Header{}
	s.secrets.Sign(header, "evt_of_"+s.key(), time.Now(), body)
	return letter{body, header}
}

func (s *shop) get(path string) []byte {
	s.Helper()
	answer, err := http.Get(s.simURL + path)
	if err != nil {
		s.Fatal(err)
	}
	return s.read(answer)
}

func (s *shop) read(answer *http.Response) []byte {
	s.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		s.Fatal(answer.Status, err, string(text))
	}
	return text
}

// play does something at the provider that isn't by us, under a key of somebody else.
func (s *shop) play(path, body string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.simURL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "theirs "+s.key())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.read(answer)
}

// bank plays the buyer's bank with a payment: complete, fail or dispute.
func (s *shop) bank(payment, word string, amount int64) {
	s.Helper()
	body := &bytes.Buffer{}
	if amount > 0 {
		fmt.Fprintf(body, `{"amount": %d}`, amount)
	}
	s.play("/payments/"+payment+"/"+word, body.String())
}

// during does something once, when the provider has carried out a call and before its
// answer comes.
func (s *shop) during(do func()) func(*http.Request, *httptest.ResponseRecorder) bool {
	var once sync.Once
	return func(*http.Request, *httptest.ResponseRecorder) bool {
		once.Do(do)
		return true
	}
}

// watchOnly lets calls of one path through; the others break off before they're carried out.
func (s *shop) watchOnly(path string) {
	s.watch(func(r *http.Request) bool { return r.URL.Path == "/sim"+path }, nil)
}

// beforeThat does something once, before the provider gets a call.
func (s *shop) beforeThat(do func()) func(*http.Request) bool {
	var once sync.Once
	return func(r *http.Request) bool {
		if !strings.HasPrefix(r.Header.Get("Idempotency-Key"), "theirs") {
			once.Do(do)
		}
		return true
	}
}
