package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tierledger/tierledger/httpapi"
)

func TestMapFollowsChanges(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	b.open(s.url)
	s.next("seatmap").has("If-None-Match", "").has("Authorization", "").snapshot(7, "aahsb")
	stream := s.next("changes?after=7").has("Accept", "text/event-stream").has("Last-Event-ID", "").stream()
	b.shows("#link", "Live")
	b.seats("A-1-1", "available", "A-1-2", "available", "A-1-3", "held", "A-1-4", "sold", "A-1-5", "blocked")
	b.shows(`[data-count="available"]`, "2")
	b.shows("h1", "gala")
	b.shows("#version", "7")

	// A change arrives, and one that was in the snapshot already, and a sign of life.
	stream.change(8, "A-1-1", "held")
	b.seats("A-1-1", "held", "A-1-2", "available")
	b.shows(`[data-count="available"]`, "1")
	b.shows(`[data-count="held"]`, "2")
	stream.change(6, "A-1-3", "available")
	stream.say(": still here\n\n")
	stream.change(9, "A-1-2", "sold")
	b.seats("A-1-1", "held", "A-1-2", "sold", "A-1-3", "held")

	// The stream is cut in the middle of an event: the page goes on after the last whole one.
	stream.say("id: 10\nevent: changes\ndata: {\"version\":10,")
	stream.cut()
	stream = s.next("changes").has("Last-Event-ID", "9").stream()
	stream.change(10, "A-1-1", "sold")
	b.seats("A-1-1", "sold", "A-1-2", "sold")
	b.shows("#link", "Live")

	// The page has missed too much: it loads the map again, whatever version that has.
	stream.cut()
	s.next("changes").has("Last-Event-ID", "10").answer(410, `{"code":"gap","version":4}`, "Content-Type", "application/problem+json")
	s.next("seatmap").has("If-None-Match", "").snapshot(4, "haaaa")
	stream = s.next("changes?after=4").has("Last-Event-ID", "").stream()
	b.seats("A-1-1", "held", "A-1-2", "available", "A-1-5", "available")
	b.shows("#version", "4")

	// The chart has grown: so does the map.
	stream.change(5, "A-1-6", "blocked")
	s.next("seatmap").has("If-None-Match", "").snapshot(5, "haaaab")
	s.next("changes?after=5").stream()
	b.seats("A-1-6", "blocked")
}

func TestMapIsPolledWithoutStream(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	b.open(s.url)
	// Its waits are shorter, what it waits for isn't.
	b.run(chromedp.Evaluate[chromedp.Void]("{ const set = setTimeout; window.setTimeout = (f, ms) => set(f, ms < 10000 ? ms / 10 : ms); }"))
	s.next("seatmap").snapshot(7, "aa")
	s.next("changes?after=7").answer(200, "<p>a proxy</p>", "Content-Type", "text/html")
	b.shows("#link", "Reconnecting")
	s.next("changes?after=7").answer(502, "")
	s.next("changes?after=7").answer(200, "", "Content-Type", "text/event-stream")
	s.next("seatmap").has("If-None-Match", `"7"`).answer(304, "", "ETag", `"7"`)
	b.shows("#link", "refreshed every 5 s")
	b.seats("A-1-1", "available")
	s.next("seatmap").has("If-None-Match", `"7"`).snapshot(8, "sa")
	b.seats("A-1-1", "sold", "A-1-2", "available")

	// The server as a whole is gone and comes back: a stream is what's tried first.
	s.next("seatmap").has("If-None-Match", `"8"`).answer(500, "")
	s.next("changes?after=8").has("Last-Event-ID", "").stream().change(9, "A-1-2", "held")
	b.seats("A-1-1", "sold", "A-1-2", "held")
	b.shows("#link", "Live")
}

func TestMapWaitsAsLongAsItIsAsked(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	b.open(s.url)
	first := s.next("seatmap")
	first.answer(503, `{"code":"overloaded"}`, "Retry-After", "3", "Content-Type", "application/problem+json")
	second := s.next("seatmap")
	if waited := second.arrived.Sub(first.arrived); waited < 3*time.Second {
		t.Errorf("the page came back after %v", waited)
	}
	second.snapshot(1, "a")
	b.seats("A-1-1", "available")
}

// A page says when what it shows is old, and doesn't wait for a dead connection.
func TestMapKnowsThatItIsOld(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	later := func(seconds int) { // the page's clock is put forward
		b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("{ const now = performance.now.bind(performance); performance.now = () => now() + %d000; }", seconds)))
	}
	b.open(s.url)
	s.next("seatmap").snapshot(7, "a")
	s.next("changes?after=7").stream()
	b.shows("#link", "Live")

	// The device slept: when it wakes up, the page takes a new connection.
	later(60)
	b.run(chromedp.Evaluate[chromedp.Void]("document.dispatchEvent(new Event('visibilitychange')); undefined"))
	stream := s.next("changes").has("Last-Event-ID", "7").stream()
	b.shows("#link", "Live")

	// Not even heartbeats come: the page gives up the connection, for once in no time.
	b.run(chromedp.Evaluate[chromedp.Void](`{
		const set = setTimeout;
		window.setTimeout = (f, ms) => (ms < 25000 ? set(f, ms) : set(() => { window.setTimeout = set; f(); }, 10));
	}`))
	stream.change(8, "A-1-1", "sold")
	stopped := s.next("changes").has("Last-Event-ID", "8")
	b.seats("A-1-1", "sold")

	// The server asks to be left alone for longer than a map stays good.
	stopped.answer(503, `{"code":"overloaded"}`, "Retry-After", "60", "Content-Type", "application/problem+json")
	b.shows("#link", "Reconnecting")
	b.is("!document.body.hasAttribute('data-old')")
	later(15)
	b.shows("#link", "Stale")
	b.is("document.body.hasAttribute('data-old')")
}

func TestMapAsksForKey(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	refuse := func(c *mapCall, status int) {
		c.answer(status, `{"code":"refused"}`, "Content-Type", "application/problem+json")
	}
	b.open(s.url)
	refuse(s.next("seatmap").has("Authorization", ""), 401)
	b.shows("#why", "with a key")
	b.is("document.getElementById('main').hidden")
	enter := func(key string) {
		b.run(chromedp.SendKeys(chromedp.CSS("#key"), key+kb.Enter))
	}
	enter("wrong")
	refuse(s.next("seatmap").has("Authorization", "Bearer wrong"), 401)
	b.shows("#why", "not known")
	enter("weak")
	refuse(s.next("seatmap").has("Authorization", "Bearer weak"), 403)
	b.shows("#why", "may not see")
	enter("right")
	s.next("seatmap").has("Authorization", "Bearer right").snapshot(1, "a")
	s.next("changes?after=1").has("Authorization", "Bearer right").stream()
	b.seats("A-1-1", "available")
	b.is("document.getElementById('unlock').hidden")

	// The tab keeps it, and nothing else.
	b.run(chromedp.Reload())
	s.next("seatmap").has("Authorization", "Bearer right").snapshot(1, "s")
	b.seats("A-1-1", "sold")
	b.is("localStorage.length === 0 && !document.cookie && !location.href.includes('right') && document.getElementById('key').value === ''")
}

// A hall of 50,000 seats on a phone, by keyboard.
func TestMapOfLargeHall(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	b.run(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	b.open(s.url)
	s.next("seatmap").answer(200, mapOf(7, 50, 40, "aahsbaaaaaaaaaaaaaaaaaaaa"), "Content-Type", "application/json", "ETag", `"7"`)
	stream := s.next("changes?after=7").stream()
	b.shows("#link", "Live")
	b.is("document.querySelectorAll('.section').length === 50")
	b.is("document.querySelectorAll('#map *').length < 10000")
	b.is("document.documentElement.scrollWidth <= 360")
	const of = `[data-section="B"]`
	b.is(`document.querySelector('` + of + `').getAttribute('aria-label') === 'Section B, <b>Block</b> B, tier stalls, 880 of 1000 available'`)
	stream.change(8, "B-1-1", "held")
	b.is(`document.querySelector('` + of + `').getAttribute('aria-label').includes('879 of 1000 available')`)

	b.run(chromedp.Focus(chromedp.CSS(of)))
	b.press(kb.Enter)
	b.seats("B-1-1", "held", "B-40-25", "available")
	b.is("document.querySelectorAll('[data-seat]').length === 1000")
	b.is("document.activeElement.dataset.seat === 'B-1-1'")
	b.press(kb.ArrowRight + kb.ArrowRight + kb.ArrowDown)
	b.is("document.activeElement.dataset.seat === 'B-2-3'")
	b.shows("#tip", "Seat B-2-3, <b>Block</b> B, tier stalls, held")
	stream.change(9, "B-2-3", "available")
	b.shows("#tip", "Seat B-2-3, <b>Block</b> B, tier stalls, available")
	b.press(kb.Escape)
	b.is("document.activeElement.dataset.section === 'B' && document.querySelectorAll('[data-seat]').length === 0")
	b.run(chromedp.Click(chromedp.CSS(`[data-section="C"] .ground`)))
	b.is("document.querySelectorAll('[data-seat^=\"C-\"]').length === 1000")
}

// A sale over the API, as the page shows it.
func TestMapShowsSale(t *testing.T) {
	w := serve(t, nil)
	row := func(seats string) string {
		return fmt.Sprintf(`"tier":"stalls","rows":[{"row":"1","seats":[%s]}]}`, seats)
	}
	w.post("/v1/events", "event", `{"event":"gala","name":"Gala","currency":"USD",
		"tiers":[{"tier":"stalls","seated":true,"price":{"amount":5000,"currency":"USD"}}],
		"seating":{"sections":[{"section":"A","name":"Left",`+row(`{"seat":"1","x":0,"y":0},{"seat":"2","x":50,"y":0},{"seat":"3","x":100,"y":0}`)+`]}}`).is(201)
	b := browse(t)
	b.open(w.url + "/events/gala/map")
	b.shows("#link", "Live")
	b.seats("A-1-1", "available", "A-1-2", "available", "A-1-3", "available")

	held := w.post("/v1/events/gala/holds", "hold", `{"customer":"ann","items":[{"seats":["A-1-1","A-1-2"]}]}`).is(201)
	b.seats("A-1-1", "held", "A-1-2", "held", "A-1-3", "available")
	w.post("/v1/holds/"+held.text("hold_id")+"/release", "release", "").is(200)
	b.seats("A-1-1", "available", "A-1-2", "available", "A-1-3", "available")

	sold := w.post("/v1/events/gala/holds", "again", `{"customer":"ann","items":[{"seats":["A-1-3"]}]}`).is(201)
	w.post("/v1/holds/"+sold.text("hold_id")+"/checkout", "pay", `{"payment_method":"sim_ok"}`).is(201)
	w.post("/v1/events/gala/seats/block", "block", `{"seats":["A-1-2"],"reason":"a camera"}`).is(200)
	b.seats("A-1-1", "available", "A-1-2", "blocked", "A-1-3", "sold")
	b.shows(`[data-count="available"]`, "1")

	w.post("/v1/events/gala/chart", "more", `{"sections":[{"section":"B","name":"Right",`+row(`{"seat":"1","x":200,"y":0}`)+`]}`).is(201)
	w.post("/v1/events/gala/holds", "new", `{"customer":"ann","items":[{"seats":["B-1-1"]}]}`).is(201)
	b.seats("A-1-2", "blocked", "A-1-3", "sold", "B-1-1", "held")
	b.shows("#link", "Live")
}

// What a screen reader is told.
func TestMapIsAccessible(t *testing.T) {
	t.Parallel()
	s, b := serveMap(t), browse(t)
	b.open(s.url)
	s.next("seatmap").snapshot(7, "ah")
	b.seats("A-1-1", "available")
	tree, err := chromedp.Run(b.ctx, func(ctx context.Context, tab *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		t.Fatal(err)
	}
	var seats []*accessibility.Node
	for _, node := range tree.Nodes {
		if node.Role != nil && string(node.Role.Value) == `"gridcell"` {
			seats = append(seats, node)
		}
	}
	if len(seats) != 2 || string(seats[0].Name.Value) != `"Seat A-1-1, <b>Block</b> A, tier stalls, accessible, available"` {
		t.Errorf("a screen reader finds %d seats: %+v", len(seats), seats)
	}
	b.is("document.documentElement.lang === 'en' && document.title === 'Seats of gala'")
}

func TestMapPageHeaders(t *testing.T) {
	t.Parallel()
	get := func(tags string) *http.Response {
		r := httptest.NewRequest("GET", "/events/gala/map", nil)
		r.Header.Set("If-None-Match", tags)
		w := httptest.NewRecorder()
		httpapi.New(httpapi.Config{}).ServeHTTP(w, r)
		return w.Result()
	}
	page := get(`"7"`)
	body, err := io.ReadAll(page.Body)
	if err != nil || page.StatusCode != 200 {
		t.Fatalf("got %d, %v", page.StatusCode, err)
	}
	for name, want := range map[string]string{
		"Content-Type":            "text/html; charset=utf-8",
		"Cache-Control":           "no-cache",
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; connect-src 'self'; img-src data:; script-src 'sha256-",
	} {
		if got := page.Header.Get(name); !strings.HasPrefix(got, want) || strings.Contains(got, "unsafe") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	tag := page.Header.Get("ETag")
	if again := get(`"7", ` + tag); again.StatusCode != 304 || again.Header.Get("ETag") != tag || again.ContentLength > 0 {
		t.Errorf("got %d %v for what the caller has", again.StatusCode, again.Header)
	}
	if text := string(body); strings.Contains(text, "{{") || strings.Contains(text, "gala") {
		t.Error("the page isn't what every event gets")
	}
}
