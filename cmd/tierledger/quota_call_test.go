package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// --json is what the API answers, and nothing else.
func TestQuotaJSON(t *testing.T) {
	t.Parallel()
	const answer = `{"event":"hall","data":[], "answer":"<as it came>"}`
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer service.Close()
	for _, line := range []string{
		"show hall", "moves hall", "lanes hall", "lanes hall 2 --reason x --dry-run",
		"move hall --tier ga --from 1 --to 2 --quantity 3 --reason x", "approve x", "reject x --reason x",
		"allot hall fans --reason x", "codes hall fans A=1", "close hall fans --reason x", "capacity hall ga 3",
	} {
		code, stdout, stderr := runHere(t, append([]string{"quota"}, append(words(line), "--json", "--url", service.URL)...)...)
		if code != exitOK || stdout != answer+"\n" {
			t.Errorf("%s: exit code %d: %s%s", line, code, stdout, stderr)
		}
	}
}

// What goes over the line: as testdata says, and nothing else.
func TestQuotaSends(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // one that's cut short shows
		line := fmt.Sprintf("%s %s %s%s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), r.Header.Get("If-Match"), body)
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, strings.TrimSpace(line))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"event":"hall","tier":"ga","from":{"lane":1},"to":{"lane":2,"allotment":"fans"},"quantity":7,"status":"moved"}`)
	}))
	defer service.Close()
	take := func() (list []string) {
		mu.Lock()
		defer mu.Unlock()
		list, sent = sent, nil
		return list
	}
	commands, rest := 0, []string(nil)
	for number, line := range script(t, "quota_requests.txt") {
		command, found := strings.CutPrefix(line, "$ ")
		switch {
		case found:
			if len(rest) > 0 {
				t.Errorf("before line %d: %q was sent too", number, rest)
			}
			commands++
			if code, _, stderr := runHere(t, append([]string{"quota"}, append(words(command), "--url", service.URL)...)...); code != exitOK {
				t.Errorf("line %d: %s: exit code %d: %s", number, command, code, stderr)
			}
			rest = take()
		case len(rest) == 0 || rest[0] != line:
			t.Errorf("line %d: sent %q, want %s", number, rest, line)
			rest = nil
		default:
			rest = rest[1:]
		}
	}
	if len(rest) > 0 || commands == 0 {
		t.Errorf("after %d commands: %q was sent too", commands, rest)
	}
}

// An answer that doesn't come, or doesn't say what was done, leaves the key to repeat with;
// one that says no needs none.
func TestQuotaOutcomes(t *testing.T) {
	t.Parallel()
	says := func(status int, problem string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // as a service does
			w.Header().Set("Retry-After", "0") // at once
			w.WriteHeader(status)
			_, _ = io.WriteString(w, problem)
		}
	}
	cut := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	busy := says(503, `{"code":"overloaded"}`)
	moved, internal := says(201, `{"status":"moved"}`), says(500, `{"code":"internal"}`)
	const move = "move hall --tier ga --from 1 --to 2 --quantity 3 --reason x"
	const allot = "allot hall fans --tier ga=3 --reason x"
	const open = "it isn't known whether it was done: repeat the same command with --idempotency-key "
	const key = "--idempotency-key"
	for name, c := range map[string]struct {
		line    string
		answers []http.HandlerFunc
		says    string
		not     string
	}{
		"done":           {move, []http.HandlerFunc{moved}, "moved 0 of", key},
		"changing":       {move, []http.HandlerFunc{says(503, `{"code":"lane_changing"}`), moved}, "moved 0 of", key},
		"too many":       {move, []http.HandlerFunc{says(429, `{"code":"too_many"}`), moved}, "moved 0 of", key},
		"cut, then done": {move, []http.HandlerFunc{cut, moved}, "moved 0 of", key},
		"cut, then no":   {move, []http.HandlerFunc{cut, says(409, `{"code":"below_committed","minimum":4}`)}, "4 is the least", key},
		"refused": {move, []http.HandlerFunc{says(409, `{"code":"insufficient_free","detail":"2 are free, 3 asked","free":2}`)},
			"409 insufficient_free: 2 are free, 3 asked; ask for 2 at most; `tierledger quota show hall` tells", key},
		"internal":        {move, []http.HandlerFunc{internal}, open, "and say"},
		"cut, then worse": {move, []http.HandlerFunc{cut, internal}, open, "and say"},
		"cut, then busy":  {move, []http.HandlerFunc{cut, busy, busy, busy, busy}, open, "and say"},
		"busy":            {move, []http.HandlerFunc{busy, busy, busy, busy, busy}, "503 overloaded", key},
		"an allot, busy":  {allot, []http.HandlerFunc{busy, busy, busy, busy, busy}, "a repeat with --idempotency-key", "and say"},
		"a proxy's":       {move, []http.HandlerFunc{says(502, `<html>`)}, open, "and say"},
		"a key of ours":   {move + " --idempotency-key k7", []http.HandlerFunc{internal}, open + "k7, and it's done once\n", "and say"},
		"a read":          {"moves hall", []http.HandlerFunc{internal}, "500 internal", key},
		"a dry run":       {move + " --dry-run", []http.HandlerFunc{internal}, "500 internal", key},
		"not JSON":        {"moves hall", []http.HandlerFunc{says(200, `<html>`)}, "the answer isn't the API's", key},
		"an old service":  {move, []http.HandlerFunc{says(404, `{"code":"not_found"}`)}, "a release without quotas?", key},
		"no key":          {move, []http.HandlerFunc{says(401, `{"code":"unauthenticated"}`)}, "give a key with --key-file", key},
		"half an allot":   {allot, []http.HandlerFunc{says(409, `{"code":"insufficient_free"}`)}, "`tierledger quota move` gives it tickets", key},
		"not an allot":    {allot, []http.HandlerFunc{says(400, `{"code":"invalid_request"}`)}, "400 invalid_request", key},
		"an open allot":   {allot, []http.HandlerFunc{internal}, open, "what was done before it stands"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f fake
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.answers[min(f.note(r), len(c.answers))-1](w, r)
			}))
			defer service.Close()
			_, stdout, stderr := runHere(t, append([]string{"quota"}, append(words(c.line), "--url", service.URL)...)...)
			if !strings.Contains(stdout+stderr, c.says) || strings.Contains(stdout+stderr, c.not) || len(f.calls) != len(c.answers) {
				t.Errorf("after %d calls: %s%s", len(f.calls), stdout, stderr)
			}
			for _, call := range f.calls {
				if call != f.calls[0] {
					t.Errorf("%+v was sent, and then %+v", f.calls[0], call)
				}
			}
		})
	}
}

// Ctrl-C while an answer is waited for leaves the key too.
func TestQuotaInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		interrupt()
		<-r.Context().Done()
	}))
	defer service.Close()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"quota", "capacity", "hall", "ga", "7", "--idempotency-key", "k7", "--url", service.URL}, &out, &errs)
	want := "tierledger: interrupted; it isn't known whether it was done: " +
		"repeat the same command with --idempotency-key k7, and it's done once\n"
	if code != exitFailed || errs.String() != want {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}

// Many codes go in several requests, each under a key of its own that a repeat has too.
func TestQuotaManyCodes(t *testing.T) {
	t.Parallel()
	var f fake
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.note(r)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{}`)
	}))
	defer service.Close()
	file := "# for fans\n\n"
	for i := range 2*codesAtOnce + 1 {
		file += fmt.Sprintf("F-%d = %d\n", i, i+1)
	}
	path := writeTemp(t, "codes", file)
	for line, paths := range map[string][]string{
		"codes hall fans --codes-file " + path:            {"/codes k", "/codes k/codes/500", "/codes k/codes/1000"},
		"allot hall fans --reason x --codes-file " + path: {"/allotments k", "/codes k/codes/500", "/codes k/codes/1000"},
	} {
		f.calls = nil
		code, stdout, stderr := runHere(t, append([]string{"quota"}, append(words(line), "--idempotency-key", "k", "--url", service.URL)...)...)
		if code != exitOK || len(f.calls) != len(paths) {
			t.Fatalf("%s: exit code %d after %d calls: %s%s", line, code, len(f.calls), stdout, stderr)
		}
		sent := 0
		for i, call := range f.calls {
			var body struct{ Codes []codeUses }
			if err := json.Unmarshal([]byte(call.body), &body); err != nil || !strings.HasSuffix(call.path+" "+call.key, paths[i]) {
				t.Errorf("%s: call %d went to %s under %s (%v)", line, i+1, call.path, call.key, err)
			}
			for _, c := range body.Codes {
				if c.Code != fmt.Sprintf("F-%d", sent) || c.MaxUses != int64(sent+1) {
					t.Fatalf("%s: code %d is %+v", line, sent, c)
				}
				sent++
			}
		}
		if sent != 2*codesAtOnce+1 {
			t.Errorf("%s: %d codes were sent", line, sent)
		}
	}
}
