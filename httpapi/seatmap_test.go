package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// mapped reads the map again until it has come to a version.
func (w *world) mapped(event, version string) (r reply) {
	w.t.Helper()
	pgtest.Until(w.t, "the map comes to "+version, func() bool {
		r = w.get("/v1/events/" + event + "/seatmap").is(200)
		return r.text("version") == version
	})
	return r
}

func TestSeatMap(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e")).is(201)
	row := `{"row":"1","seats":[{"seat":"1","x":5,"y":7,"accessible":true},{"seat":"2","x":6,"y":7,"aisle":true},{"seat":"3","x":9,"y":7}]}`
	w.post("/v1/events/e/chart", "c", chart(`{"section":"A","name":"Left <&>","tier":"front","rows":[`+row+`]}`, part("B", "back", 2, 2))).is(201)
	w.post("/v1/events/e/chart", "d", chart(part("C", "front", 1, 1))).is(201)
	w.get("/v1/events/e/seatmap").is(200).has("event", "e", "version", 3,
		"total.available", 8, "total.held", 0, "total.sold", 0, "total.blocked", 0,
		"sections.0.section", "A", "sections.0.name", "Left <&>", "sections.0.tier", "front", "sections.0.rows.0.row", "1",
		"sections.0.rows.0.seats", "[1 2 3]", "sections.0.rows.0.x", "[5 6 9]", "sections.0.rows.0.y", "[7 7 7]",
		"sections.0.rows.0.accessible", "[0]", "sections.0.rows.0.aisles", "[1]", "sections.0.rows.0.states", "aaa",
		"sections.1.rows.1.states", "aa", "sections.1.rows.0.accessible", "<nil>", "sections.2.section", "C")

	w.post("/v1/events/e/seats/block", "b", setAside("x", "A-1-3", "C-1-1")).is(200)
	o := w.ask("e", "h1", "alice", named("B-2-1")).is(201)
	w.post("/v1/holds/"+o.text("hold_id")+"/checkout", "p", paying("sim_ok")).is(201)
	h := w.ask("e", "h2", "bob", named("A-1-1"), `{"tier":"ga","quantity":1}`).is(201)
	w.mapped("e", h.text("version")).has("total.available", 4, "total.held", 1, "total.sold", 1, "total.blocked", 2,
		"sections.0.rows.0.states", "hab", "sections.1.rows.1.states", "sa", "sections.2.rows.0.states", "b")

	w.ask("e", "h3", "carol", `{"tier":"ga","quantity":1}`).is(201) // no seat: the map stays what it is
	w.get("/v1/events/e/seatmap").has("version", h.text("version"))
	w.get("/v1/events/none/seatmap").refused(404, "event_not_found")
	w.get("/v1/events/e/seatmap?after=1").refused(400, "invalid_request").has("field", "after")
}

func TestSeatMapOfNoSeats(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("uncharted")).is(201)
	w.event("ga", 5)
	w.hold("ga", "h", "alice", 1).is(201)
	for _, event := range []string{"uncharted", "ga"} {
		r := w.get("/v1/events/"+event+"/seatmap").is(200).has("event", event, "version", 0, "sections", "[]", "total.available", 0)
		if r.header.Get("ETag") != "" {
			t.Errorf("%s: a map without seats has the tag %s", event, r.header.Get("ETag"))
		}
		w.get("/v1/events/"+event+"/changes?after=0").is(200).has("version", 0, "changes", "[]")
	}
	w.post("/v1/events/uncharted/chart", "c", chart(part("A", "front", 1, 3))).is(201)
	w.mapped("uncharted", "2").has("total.available", 3)
}

// asOf is what changes in a map now and then, though nothing happens.
var asOf = regexp.MustCompile(`"as_of":"[^"]*",`)

// The map is kept by whoever read it, in the form that each can read.
func TestSeatMapOnTheWire(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	fetch := func(method string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, w.url+"/v1/events/e/seatmap", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Add(headers[i], headers[i+1])
		}
		response, err := (&http.Transport{DisableCompression: true}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		h := response.Header
		if h.Get("Vary") != "Accept-Encoding" || h.Get("ETag") != `"2"` || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s %v: got the headers %v", method, headers, h)
		}
		return response, body
	}
	_, plain := fetch("GET")
	if !json.Valid(plain) {
		t.Errorf("the map is %s", plain)
	}
	for accept, compressed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip; q=1.0": true,
		"identity": false, "gzip;q=0": false, "gzip; q=0.000, br": false, "br": false, "xgzip": false,
	} {
		response, body := fetch("GET", "Accept-Encoding", accept)
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("%s: compressed is %v", accept, got)
		}
		if compressed {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(asOf.ReplaceAll(body, nil), asOf.ReplaceAll(plain, nil)) {
			t.Errorf("%s: got %.40q, want %.40q", accept, body, plain)
		}
	}
	for _, match := range []string{`"2"`, `W/"2"`, `"1", "2"`, "*"} {
		response, body := fetch("GET", "If-None-Match", match, "Accept-Encoding", "gzip")
		if response.StatusCode != 304 || len(body) > 0 || response.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: got %d %v", match, response.StatusCode, response.Header)
		}
	}
	if response, _ := fetch("GET", "If-None-Match", `"1"`); response.StatusCode != 200 {
		t.Errorf("an old tag got %d", response.StatusCode)
	}
	for before := []byte(nil); !bytes.Equal(before, plain); { // else it was rendered anew meanwhile
		_, before = fetch("GET")
		response, body := fetch("HEAD")
		_, plain = fetch("GET")
		if bytes.Equal(before, plain) && (response.StatusCode != 200 || len(body) > 0 || response.ContentLength != int64(len(plain))) {
			t.Errorf("HEAD got %d with %d bytes of %d", response.StatusCode, len(body), response.ContentLength)
		}
	}
}
