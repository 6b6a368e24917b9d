package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	seatsCSV  = "section,row,seat,tier,accessible\nA,1,1,stalls,yes\nA,1,2,stalls,\nA,2,1,stalls,\nB,1,1,balcony,\n"
	seatsJSON = `{"event":"hall","name":"A night in the hall","currency":"USD","tiers":[
  {"tier":"stalls","seated":true,"price":{"amount":5000,"currency":"USD"}},
  {"tier":"balcony","seated":true,"price":{"amount":3000,"currency":"USD"}},
  {"tier":"ga","quantity":50,"price":{"amount":2000,"currency":"USD"}}],
"seating":{"sections":[
  {"section":"S","name":"Stalls","tier":"stalls","rows":[
    {"row":"1","seats":[{"seat":"1"},{"seat":"2","accessible":true}]},
    {"row":"2","seats":[{"seat":"1"},{"seat":"2"}]}]}]}}`
)

// importHere runs events import in this process, on a file of the given text.
func importHere(t *testing.T, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runHere(t, append([]string{"events", "import", writeTemp(t, "seats", text)}, args...)...)
}

func TestImport(t *testing.T) {
	t.Parallel()
	dir := storeFolder(t)
	dev := start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	event, more := writeTemp(t, "hall.json", seatsJSON), writeTemp(t, "more.csv", seatsCSV)
	steps := []struct {
		args string
		code int
		says []string
	}{
		{more + " --event hall", exitFailed, []string{"event_not_found", "create event hall first"}},
		{event + " --dry-run", exitOK, []string{"event hall: 4 seats in the file; nothing was sent"}},
		{event, exitOK, []string{"event hall: created, and 4 seats loaded", "S                 stalls       2        4           1\n"}},
		{event, exitOK, []string{"event hall: already imported, nothing has changed; 4 seats"}},
		{more + " --event hall", exitOK, []string{"event hall: 4 seats loaded", "B                 balcony       1        1           0\n",
			"all                             3        4           1\n"}},
		{more + " --event hall --json", exitOK, []string{`"already_imported":true`, `"section":"B","name":"B","tier":"balcony","rows":1,"seats":1,"accessible":0,"digest":"`}},
		{writeTemp(t, "again.csv", seatsCSV+"C,1,1,stalls,\n") + " --event hall", exitFailed, []string{"load the seats of event hall: 409 section_exists"}},
		{writeTemp(t, "tier.csv", "section,row,seat,tier\nC,1,1,ga\n") + " --event hall", exitFailed, []string{"load the seats of event hall: 400 invalid_request"}},
		{writeTemp(t, "mended.json", strings.Replace(seatsJSON, `"section":"S"`, `"section":"D"`, 1)), exitOK, []string{"event hall: 4 seats loaded"}},
	}
	for _, s := range steps {
		code, stdout, stderr := execute(t, append([]string{"events", "import", "--url", dev.url}, strings.Fields(s.args)...)...)
		if code != s.code {
			t.Fatalf("%s: exit code %d, want %d: %s%s", s.args, code, s.code, stdout, stderr)
		}
		for _, text := range s.says {
			if !strings.Contains(stdout+stderr, text) {
				t.Errorf("%s doesn't say %q: %s%s", s.args, text, stdout, stderr)
			}
		}
	}
	// What a dry run tells of a file is what's kept, to the digest of its rows.
	var said [2]imported
	for i, args := range [][]string{{"--dry-run"}, {"--url", dev.url}} {
		_, stdout, stderr := execute(t, append([]string{"events", "import", more, "--event", "hall", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &said[i]); err != nil || len(said[i].Sections) != 2 || len(said[i].Sections[0].Digest) != 64 {
			t.Errorf("%s: %s%s (%v)", args, stdout, stderr, err)
		}
	}
	if !slices.Equal(said[0].Sections, said[1].Sections) {
		t.Errorf("in the file are %+v, kept are %+v", said[0].Sections, said[1].Sections)
	}
	r := want(t, http.StatusOK, "", "GET", dev.url+"/v1/events/hall/seatmap", "", "")
	var m struct {
		Total struct{ Available int }
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || m.Total.Available != 12 {
		t.Errorf("the map has %d available seats, want 12 (%v)", m.Total.Available, err)
	}
	code, stdout, stderr := execute(t, "verify", "--data", dir)
	if code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// A wrong file is told line by line, and nobody is called.
func TestImportTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was called", r.Method, r.URL)
	}))
	defer service.Close()
	path := writeTemp(t, "seats.csv", seatsCSV+"A,1,1,stalls,perhaps\nA,3,1,balcony,\n")
	code, stdout, stderr := runHere(t, "events", "import", path, "--event", "e", "--url", service.URL)
	wants := fmt.Sprintf("%[1]s: line 6: accessible: is \"perhaps\"; write true or false, yes or no, 1 or 0, or nothing for no\n"+
		"%[1]s: line 6: seat A-1-1 is in line 2 already\n"+
		"%[1]s: line 7: tier: is \"balcony\", but section A is of tier \"stalls\" since line 2; a section has one tier\n", path)
	if code != exitFailed || stdout != "" || stderr != wants {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, args := range []string{"--event e --dry-run", "--dry-run"} {
		code, stdout, stderr = importHere(t, seatsCSV, append(strings.Fields(args), "--json", "--url", service.URL)...)
		var d imported
		if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != exitOK || !d.DryRun || d.Seats != 4 || len(d.Sections) != 2 {
			t.Errorf("%s: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}

// Standard input is a file, too.
func TestImportStandardInput(t *testing.T) {
	t.Parallel()
	for text, wants := range map[string]struct {
		code int
		says string
	}{
		seatsCSV: {exitOK, "4 seats in the file; nothing was sent\n"},
		"{":      {exitFailed, "standard input: line 1: isn't valid JSON"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := invocation{args: []string{"events", "import", "-", "--dry-run"}}.command(ctx)
		cmd.Stdin = strings.NewReader(text)
		said, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != wants.code || !strings.HasPrefix(string(said), wants.says) {
			t.Errorf("exit code %d, want %d and %q: %s (%v)", code, wants.code, wants.says, said, err)
		}
	}
}

func TestImportUsage(t *testing.T) {
	t.Parallel()
	empty := writeTemp(t, "key", "\n")
	for line, c := range map[string]struct {
		text string
		code int
		says string
	}{
		"--url ftp://x":                        {seatsCSV, exitUsage, "url: not a URL such as"},
		"--url http://u:hunter2@x":             {seatsCSV, exitUsage, "url: not a URL such as"},
		"--url http://127.0.0.1:1":             {seatsCSV, exitUsage, "give --event"},
		"--event hole":                         {seatsJSON, exitUsage, "--event hole: the file is of event hall"},
		"--event e --url http://127.0.0.1:1":   {seatsCSV, exitFailed, "connection refused"},
		"--event e --key hunter2 --key-file x": {seatsCSV, exitUsage, "key"},
		"--event e --key-file " + empty:        {seatsCSV, exitUsage, "is empty"},
		"--event e --key-file nowhere":         {seatsCSV, exitFailed, "nowhere"},
		"--event e --key hunter2\u00fc":        {seatsCSV, exitUsage, "a key is one word"},
		"surplus":                              {seatsCSV, exitUsage, "arg"},
	} {
		code, stdout, stderr := importHere(t, c.text, strings.Fields(line)...)
		if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" || strings.Contains(stderr, "hunter2") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d and one line with %q: %s%s", line, code, c.code, c.says, stdout, stderr)
		}
	}
}

// fake is a service that notes what it's sent, and answers as the test wants.
type fake struct {
	mu    sync.Mutex
	calls []fakeCall
}

type fakeCall struct{ path, key, credential, body string }

func (f *fake) note(r *http.Request) (nth int) {
	body, _ := io.ReadAll(r.Body) // one that's cut short shows
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fakeCall{r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), string(body)})
	return len(f.calls)
}

// The event goes without its chart, the chart in a request of its own; both go again,
// under the same keys, when there's no answer or the service is busy.
func TestImportSendsAgain(t *testing.T) {
	t.Setenv("TIERLEDGER_KEY", "tl_secret")
	var f fake
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f.note(r) {
		case 1:
			panic(http.ErrAbortHandler)
		case 3:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"overloaded"}`)
		case 2, 4:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"event":"hall","version":2,"seats":4,"sections":[{"section":"S","name":"Stalls","tier":"stalls","rows":2,"seats":4,"accessible":1}]}`)
		}
	}))
	defer service.Close()
	t.Setenv("TIERLEDGER_URL", service.URL+"/")
	code, stdout, stderr := importHere(t, seatsJSON)
	if code != exitOK || !strings.Contains(stdout, "created, and 4 seats loaded; version 2") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if len(f.calls) != 4 || f.calls[0] != f.calls[1] || f.calls[2] != f.calls[3] {
		t.Fatalf("calls: %+v", f.calls)
	}
	event, chart := f.calls[0], f.calls[2]
	if event.path != "/v1/events" || strings.Contains(event.body, "seating") || !strings.Contains(event.body, `"quantity":50`) {
		t.Errorf("the event: %+v", event)
	}
	if chart.path != "/v1/events/hall/chart" || !strings.HasPrefix(chart.body, `{"sections":[{"section":"S"`) || chart.key == event.key {
		t.Errorf("the chart: %+v", chart)
	}
	if event.credential != "Bearer tl_secret" || chart.credential != "Bearer tl_secret" {
		t.Errorf("credentials %q, %q", event.credential, chart.credential)
	}
}

// The key goes to the service that it's for, and isn't shown.
func TestImportKeepsTheKey(t *testing.T) {
	t.Parallel()
	key := writeTemp(t, "key", "tl_secret\n")
	var here, there fake
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { there.note(r) }))
	defer other.Close()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if here.note(r) == 1 {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"forbidden","detail":"the role operator may"}`)
	}))
	defer service.Close()
	for _, says := range []string{"307 Temporary Redirect: is that a tierledger?", "403 forbidden: the role operator may"} {
		code, stdout, stderr := importHere(t, seatsCSV, "--event", "e", "--url", service.URL, "--key-file", key)
		if code != exitFailed || !strings.Contains(stderr, says) || strings.Contains(stdout+stderr, "tl_secret") {
			t.Errorf("exit code %d, want %q: %s%s", code, says, stdout, stderr)
		}
	}
	if len(there.calls) != 0 || len(here.calls) != 2 || here.calls[0].credential != "Bearer tl_secret" {
		t.Errorf("calls here %+v, there %+v", here.calls, there.calls)
	}
}

// A chart that is refused after its event was created says so.
func TestImportHalfDone(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chart") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"tier_not_found"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer service.Close()
	code, _, stderr := importHere(t, seatsJSON, "--url", service.URL)
	if code != exitFailed || stderr != "tierledger: event hall was created, its seats weren't loaded: 404 tier_not_found\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// What is told of a body on its way ends with the answer.
func TestSending(t *testing.T) {
	t.Parallel()
	var told []string
	body := newSending([]byte("0123456789"), func(state string) { told = append(told, state) })
	if body.worthMore(io.ErrUnexpectedEOF) {
		t.Error("nobody was reached, and it's tried again")
	}
	for _, n := range []int{3, 7} {
		if _, err := io.ReadFull(body, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	body.over.Store(true)
	_, _ = body.Read(make([]byte, 1)) // its end
	if want := []string{"30 % sent", "sent, waiting for the answer"}; !slices.Equal(told, want) || !body.worthMore(io.ErrUnexpectedEOF) {
		t.Errorf("told %q, want %q", told, want)
	}
}
