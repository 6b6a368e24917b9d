package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What goes over the line: as testdata says, and nothing else.
func TestSubscriptionsSend(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // one that's cut short shows
		line := fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), body)
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, strings.TrimSpace(line))
		_, _ = io.WriteString(w, `{"data":[],"kinds":[],"delivered":true}`)
	}))
	defer service.Close()
	var want []string
	check := func(command string) {
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(sent, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s sent\n%s\nwant\n%s", command, got, strings.Join(want, "\n"))
		}
		sent, want = nil, nil
	}
	last := ""
	for number, line := range script(t, "subscription_requests.txt") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			want = append(want, line)
			continue
		}
		check(last)
		last = command
		if code, stdout, stderr := runHere(t, append([]string{"subscriptions"}, append(words(command), "--url", service.URL)...)...); code != exitOK {
			t.Errorf("line %d: %s: exit code %d: %s%s", number, command, code, stdout, stderr)
		}
	}
	check(last)
}

// What people read has the secret once, what happened, and no line that's too long.
func TestSubscriptionsTell(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"POST /v1/subscriptions": `{"subscription_id":"00000000-5d3a-8b71-a204-e8c91f60b7d2","url":"https://example.com/x","kinds":["order.*"],
			"event":"hall","description":"box office","status":"active","secret":"whsec_abc"}`,
		"GET /v1/subscriptions": `{"data":[{"subscription_id":"00000000-5d3a-8b71-a204-e8c91f60b7d2","url":"https://example.com/x","kinds":[],
			"status":"disabled","reason":"the subscriber answered 410: it wants no more","old_secret_until":"2027-03-01T09:00:00.5Z"}],"next_cursor":"c"}`,
		"GET /v1/subscriptions/s1/deliveries": `{"data":[{"journal":9,"seq":57,"kind":"order.captured","status":"pending","attempts":2,
			"created_at":"2027-03-01T09:00:00Z","next_attempt_at":"2027-03-01T09:05:00Z",
			"log":[{"status_code":500},{"status_code":0,"milliseconds":15000,"error":"no answer within 15s"}]}],"next_cursor":null}`,
		"POST /v1/subscriptions/s1/deliveries/resend": `{"deliveries":10000,"more":true}`,
		"POST /v1/subscriptions/s1/test":              `{"delivered":false,"status_code":502,"milliseconds":7,"error":"the answer was 502"}`,
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[r.Method+" "+r.URL.Path])
	}))
	defer service.Close()
	for command, c := range map[string]struct {
		code int
		want []string
	}{
		"create https://example.com/x": {exitOK, []string{"made 00000000-5d3a-8b71-a204-e8c91f60b7d2", "order.* of hall (box office)", "can't be shown again", "whsec_abc"}},
		"list":                         {exitOK, []string{"all entries", "disabled: the subscriber answered 410", "until 2027-03-01T09:00:00Z", "there are others"}},
		"deliveries s1":                {exitOK, []string{"9/57  order.captured  pending after 2 attempts", "no answer within 15s", "next attempt 2027-03-01T09:05:00Z"}},
		"resend s1":                    {exitOK, []string{"10,000 deliveries are due now; there are others"}},
		"resend s1 --dry-run":          {exitOK, []string{"nothing was changed", "would be sent again"}},
		"test s1":                      {exitFailed, []string{"status 502 after 7 ms", "not delivered: the answer was 502"}},
	} {
		code, stdout, stderr := runHere(t, append([]string{"subscriptions"}, append(words(command), "--url", service.URL)...)...)
		if code != c.code {
			t.Errorf("%s: exit code %d: %s%s", command, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s doesn't say %q: %s%s", command, want, stdout, stderr)
			}
		}
		fits(t, stdout)
	}
}
