package httpapi_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
)

// keysFor makes keys of principals with roles, such as "shop booking".
func keysFor(t *testing.T, principals ...string) (*httpapi.Keys, map[string]string) {
	t.Helper()
	secrets := make(map[string]string)
	text := "# the keys of a test\n\n"
	for _, p := range principals {
		name, list, _ := strings.Cut(p, " ")
		key, line, err := httpapi.NewKey(name, strings.Split(list, ",")...)
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = key
		text += line + "\n"
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := httpapi.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys, secrets
}

// Every call that needs a key, and who may make it: booking, finance, operator,
// auditor, admin.
const mayCall = `
	GET   /v1/events                                b f o u a
	POST  /v1/events                                . . o . a
	GET   /v1/events/none                           b f o u a
	POST  /v1/events/none/tiers                     . . o . a
	PATCH /v1/events/none/tiers/none                . . o . a
	GET   /v1/events/none/availability              b f o u a
	GET   /v1/events/none/holds                     b f o u a
	POST  /v1/events/none/holds                     b . o . a
	GET   /v1/holds/none                            b f o u a
	POST  /v1/holds/none/release                    b . o . a
	POST  /v1/holds/none/checkout                   b . . . a
	GET   /v1/orders?event=none                     b f o u a
	GET   /v1/orders/none                           b f o u a
	POST  /v1/orders/none/cancel                    b . o . a
	POST  /v1/orders/none/refunds                   . f . . a
	GET   /v1/recon/cases                           . f o u a
	GET   /v1/recon/cases/none                      . f o u a
	POST  /v1/recon/cases/none/resolve              . f . . a
	POST  /v1/recon/cases/none/approve              . f . . a
	POST  /v1/recon/cases/none/reject               . f . . a
	POST  /v1/recon/reports/none                    . f . . a
	GET   /v1/events/none/buckets                   b f o u a
	GET   /v1/events/none/lanes                     b f o u a
	POST  /v1/events/none/lanes                     . . o . a
	GET   /v1/events/none/quota-moves               . f o u a
	POST  /v1/events/none/quota-moves               . . o . a
	GET   /v1/quota-moves/none                      . f o u a
	POST  /v1/quota-moves/none/approve              . . o . a
	POST  /v1/quota-moves/none/reject               . . o . a
	GET   /v1/events/none/allotments                b f o u a
	POST  /v1/events/none/allotments                . . o . a
	POST  /v1/events/none/allotments/none/codes     . . o . a
	POST  /v1/events/none/allotments/none/close     . . o . a
	GET   /v1/events/none/entries                   . f o u a
	POST  /v1/events/none/entries                   . f . . a
	GET   /v1/events/none/entries/1                 . f o u a
	GET   /v1/events/none/accounts                  . f o u a
	GET   /v1/events/none/accounts/held             . f o u a
	GET   /v1/events/none/accounts/held/postings    . f o u a
	GET   /v1/dead-letters                          . f o u a
	GET   /v1/dead-letters/none                     . f o u a
	GET   /v1/dead-letters/replays                  . f o u a
	POST  /v1/dead-letters/replays                  . f o . a
	GET   /v1/dead-letters/replays/none             . f o u a
	POST  /v1/dead-letters/replays/none/approve     . f . . a
	POST  /v1/dead-letters/replays/none/reject      . f . . a
	POST  /v1/dead-letters/replays/none/stop        . f o . a
	POST  /v1/dead-letters/replays/none/resume      . f o . a
	GET   /v1/events/none/trial-balance             . f o u a`

func TestRoles(t *testing.T) {
	keys, secrets := keysFor(t, "b booking", "f finance", "o operator", "u auditor", "a admin")
	w := serve(t, func(c *httpapi.Config) { c.Keys, c.LoopbackAdmin = keys, false })
	for line := range strings.SplitSeq(strings.TrimSpace(mayCall), "\n") {
		method, path, may := strings.Fields(line)[0], strings.Fields(line)[1], strings.Fields(line)[2:]
		missing := w.do(method, path, "").refused(401, "unauthenticated")
		if got := missing.header.Get("WWW-Authenticate"); got != `Bearer realm="tierledger"` {
			t.Errorf("%s: WWW-Authenticate is %q", line, got)
		}
		for who, key := range secrets {
			reply := w.do(method, path, "", "Authorization", "Bearer "+key)
			if allowed := reply.status != 403; allowed != slices.Contains(may, who) || reply.status == 401 {
				t.Errorf("%s: %s got %d", line, who, reply.status)
			}
		}
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml", "/asyncapi.yaml", "/version"} {
		w.get(open).is(200)
	}
	w.post("/v1/events", "k", `{}`, "Authorization", "Bearer "+secrets["b"]).
		refused(403, "forbidden").has("roles", "[operator admin]")
}

func TestAuthorizationHeader(t *testing.T) {
	keys, secrets := keysFor(t, "u auditor")
	w := serve(t, func(c *httpapi.Config) { c.Keys = keys }) // loopback is admin
	w.get("/v1/events").is(200)
	for _, good := range []string{"Bearer " + secrets["u"], "bearer  " + secrets["u"]} {
		w.get("/v1/events", "Authorization", good).is(200)
		w.post("/v1/events", "k", `{}`, "Authorization", good).refused(403, "forbidden")
	}
	for _, bad := range []string{"", "Bearer", "Bearer ", "Bearer x", secrets["u"], "Basic " + secrets["u"], "Bearer " + secrets["u"] + "x"} {
		w.get("/v1/events", "Authorization", bad).refused(401, "unauthenticated")
	}
	w.get("/v1/events", "Authorization", "Bearer "+secrets["u"], "Authorization", "Bearer x").refused(401, "unauthenticated")
}

// A web page must not be able to post to a developer's ledger.
func TestWebPageIsNobody(t *testing.T) {
	w := serve(t, nil)
	body := `{"event":"e","name":"E","currency":"USD","tiers":[{"tier":"ga","quantity":1,"price":{"amount":1,"currency":"USD"}}]}`
	w.post("/v1/events", "k", body, "Origin", "https://evil.example").refused(401, "unauthenticated")
	w.post("/v1/events", "k", body, "Origin", w.url).is(201)
}
