package httpapi_test

import (
	"slices"
	"strings"
	"testing"
)

// pages follows a list to its end by the cursors alone, and gives its items.
func (w *world) pages(path string) []any {
	w.t.Helper()
	var all []any
	base, _, _ := strings.Cut(path, "?")
	for len(all) < 1000 {
		page := w.get(path).is(200)
		items := page.field("data").([]any)
		all = append(all, items...)
		next := page.field("next_cursor")
		if next == nil {
			return all
		}
		if len(items) == 0 {
			w.t.Fatalf("%s leads on from nothing", path)
		}
		path = base + "?cursor=" + escape(next.(string))
	}
	w.t.Fatalf("%s doesn't end", path)
	return nil
}

// walk is pages, of which it gives a member of each item. It fails the test when
// one comes twice.
func (w *world) walk(path, name string) []string {
	w.t.Helper()
	var all []string
	for _, item := range w.pages(path) {
		key := text(member(item, name))
		if slices.Contains(all, key) {
			w.t.Errorf("%s gives %s twice", path, key)
		}
		all = append(all, key)
	}
	return all
}

func TestPageParameters(t *testing.T) {
	w := serve(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		w.event(name, 1)
	}
	for _, limit := range []string{"0", "-1", "501", "x", "1.5", "", "9223372036854775808"} {
		w.get("/v1/events?limit="+limit).refused(400, "invalid_request").has("field", "limit")
	}
	for _, limit := range []string{"1", "3", "500"} {
		w.get("/v1/events?limit=" + limit).is(200)
	}
	if got := strings.Join(w.walk("/v1/events?limit=1", "event"), " "); got != "a b c" {
		t.Errorf("the pages have %s", got)
	}
	// A page that is exactly full is the last one.
	w.get("/v1/events?limit=3").is(200).has("next_cursor", "<nil>")

	forge := func(text string) string { return escape(encode(text)) }
	for name, cursor := range map[string]string{
		"nonsense":         "x",
		"not base64":       "!",
		"not JSON":         forge("x"),
		"unknown field":    forge(`{"path":"/v1/events","filters":"","limit":1,"after":"","more":1}`),
		"another list":     forge(`{"path":"/v1/events/a/holds","filters":"","limit":1,"after":""}`),
		"a foreign filter": forge(`{"path":"/v1/events","filters":"dry_run=true","limit":1,"after":""}`),
		"broken filters":   forge(`{"path":"/v1/events","filters":"%zz","limit":1,"after":""}`),
		"NUL":              forge(`{"path":"/v1/events","filters":"","limit":1,"after":"\u0000"}`),
	} {
		if r := w.get("/v1/events?cursor="+cursor).refused(400, "invalid_request"); r.text("field") != "cursor" {
			t.Errorf("%s: the error is about %s", name, r.text("field"))
		}
	}
	w.get("/v1/events?cursor="+forge(`{"path":"/v1/events","filters":"","limit":501,"after":""}`)).
		refused(400, "invalid_request").has("field", "limit")
	w.get("/v1/events/a/holds?cursor="+forge(`{"path":"/v1/events/a/holds","filters":"customer=%00","limit":1,"after":""}`)).
		refused(400, "invalid_request").has("field", "cursor")
	for _, after := range []string{"x", "1", "0 1", "1 0", "1 501", "1 1 1"} {
		w.get("/v1/events/a/accounts/available/postings?cursor="+
			forge(`{"path":"/v1/events/a/accounts/available/postings","filters":"","limit":1,"after":"`+after+`"}`)).
			refused(400, "invalid_request").has("field", "cursor")
	}
}

func TestQueryParameters(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 1)
	w.get("/v1/events?limti=1").refused(400, "invalid_request").has("field", "limti")
	w.get("/v1/events?limit=1&limit=2").refused(400, "invalid_request").has("field", "limit")
	w.get("/v1/events?cursor=%00").refused(400, "invalid_request").has("field", "cursor")
	w.get("/v1/events?cursor=%zz").refused(400, "invalid_request").has("field", "query")
	w.get("/v1/events/e?dry_run=true").refused(400, "invalid_request").has("field", "dry_run")
	w.post("/v1/events/e/holds?dry_run=true", "k", lines("a", 1)).refused(400, "invalid_request").has("field", "dry_run")
	w.do("PATCH", "/v1/events/e/tiers/ga?dry_run=1", `{"name":"x"}`, "Idempotency-Key", "k").
		refused(400, "invalid_request").has("field", "dry_run")
}
