package subscribers_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/subscribers"
)

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), subscribers.Statements, "sql.go")
}

// A repeat is known by its key: it makes nothing, and shows no secret.
func TestCreateOnce(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	spec := subscribers.Spec{URL: "https://example.com/hook", Kinds: []string{"order.*"}, Event: "gig", Description: "till"}
	first, err := d.Create(d.ctx, "ann", "k", spec)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(first.Secret, "whsec_"))
	if err != nil || len(secret) != 32 || first.Replayed || first.Status != subscribers.Active {
		t.Errorf("made %+v: %v", first, err)
	}
	again, err := d.Create(d.ctx, "ann", "k", spec)
	if err != nil || !again.Replayed || again.Secret != "" || again.ID != first.ID || again.Event != "gig" {
		t.Errorf("again %+v: %v", again, err)
	}
	spec.Description = "other"
	if _, err := d.Create(d.ctx, "ann", "k", spec); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("another under the key: %v", err)
	}
	if _, err := d.Enable(d.ctx, "ann", "k", first.ID); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("another change under the key: %v", err)
	}
	other, err := d.Create(d.ctx, "bob", "k", spec)
	if err != nil || other.ID == first.ID || other.Replayed {
		t.Errorf("another principal's %+v: %v", other, err)
	}
	list, err := d.List(d.ctx, uuid.Nil, 10)
	if err != nil || len(list) != 2 {
		t.Errorf("list %+v: %v", list, err)
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := open(t, func(o *subscribers.Options) { o.AllowPrivate = false })
	for _, c := range []struct {
		spec  subscribers.Spec
		def   *fault.Def
		field string
	}{
		{subscribers.Spec{URL: ""}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "://"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https:///path"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "http://example.com"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "ftp://example.com"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://user:pw@example.com"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://example.com/#x"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://example.com:0"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://example.com:65536/x"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://example.com:99999"}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://example.com/" + strings.Repeat("x", 2000)}, fault.ErrInvalidRequest, "url"},
		{subscribers.Spec{URL: "https://localhost:8443"}, subscribers.ErrAddressNotAllowed, "localhost"},
		{subscribers.Spec{URL: "https://a.LOCALHOST."}, subscribers.ErrAddressNotAllowed, "a.localhost"},
		{subscribers.Spec{URL: "https://127.0.0.1"}, subscribers.ErrAddressNotAllowed, "127.0.0.1"},
		{subscribers.Spec{URL: "https://169.254.169.254/latest/meta-data"}, subscribers.ErrAddressNotAllowed, "169.254.169.254"},
		{subscribers.Spec{URL: "https://[::1]:9"}, subscribers.ErrAddressNotAllowed, "::1"},
		{subscribers.Spec{URL: "https://[::ffff:10.0.0.1]"}, subscribers.ErrAddressNotAllowed, "::ffff:10.0.0.1"},
		{subscribers.Spec{URL: "https://[64:ff9b::a00:1]"}, subscribers.ErrAddressNotAllowed, "64:ff9b::a00:1"},
		{subscribers.Spec{URL: "https://example.com", Kinds: []string{"*"}}, fault.ErrInvalidRequest, "kinds"},
		{subscribers.Spec{URL: "https://example.com", Kinds: []string{"order.*.x"}}, fault.ErrInvalidRequest, "kinds"},
		{subscribers.Spec{URL: "https://example.com", Kinds: make([]string, 51)}, fault.ErrInvalidRequest, "kinds"},
		{subscribers.Spec{URL: "https://example.com", Event: "a b"}, fault.ErrInvalidRequest, "event"},
		{subscribers.Spec{URL: "https://example.com", Event: "none"}, buckets.ErrEventNotFound, "none"},
		{subscribers.Spec{URL: "https://example.com", Description: strings.Repeat("x", 201)}, fault.ErrInvalidRequest, "description"},
	} {
		_, err := d.Create(d.ctx, "ann", "k", c.spec)
		if e := fault.As(err); !errors.Is(err, c.def) || len(e.Fields) == 0 || fmt.Sprint(e.Fields[0].Value) != c.field {
			t.Errorf("%.60q %v: %v", c.spec.URL, c.spec.Kinds, err)
		}
	}
	if n := column[int](d, `SELECT count(*) FROM subscription_changes`)[0]; n != 0 {
		t.Errorf("%d refusals are remembered", n)
	}
	if _, err := d.Create(d.ctx, "ann", "k", subscribers.Spec{URL: "https://93.184.215.14:8443/x?y=z"}); err != nil {
		t.Errorf("a public address: %v", err)
	}
}

func TestWithoutSecretKeys(t *testing.T) {
	t.Parallel()
	d := open(t, func(o *subscribers.Options) { o.Ring = keyring.Ring{} })
	if _, err := d.Create(d.ctx, "ann", "k", subscribers.Spec{URL: "https://example.com"}); !errors.Is(err, subscribers.ErrSecretKeysRequired) {
		t.Errorf("made without secret keys: %v", err)
	}
}

// Only active subscriptions count: there's always room after one is disabled.
func TestTooMany(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	spec := subscribers.Spec{URL: "https://example.com"}
	off := d.subscribe(nil, spec)
	if _, err := d.Disable(d.ctx, "ann", d.key(), off.ID, "not now"); err != nil {
		t.Fatal(err)
	}
	last := d.subscribe(nil, spec)
	for _, status := range []string{"active", "disabled"} {
		n := subscribers.MaxActive - 1
		d.exec(`WITH made AS (
			INSERT INTO subscriptions (subscription_id, url, kinds, event, description, status, reason, secret, active_since,
			                           created_by, created_at, changed_by, changed_at)
			SELECT gen_random_uuid(), url, kinds, event, description, $2, reason, secret, active_since, created_by, created_at, changed_by, changed_at
			FROM subscriptions, generate_series(1, $3)
			WHERE subscription_id = $1
			RETURNING *)
			INSERT INTO subscription_changes (change_id, subscription_id, kind, digest, changed_by, changed_at)
			SELECT subscription_id, subscription_id, 'created', '', created_by, created_at FROM made`, last.ID, status, n)
	}
	if _, err := d.Create(d.ctx, "ann", "once-1", spec); !errors.Is(err, subscribers.ErrTooManySubscriptions) {
		t.Errorf("one more made: %v", err)
	}
	if _, err := d.Enable(d.ctx, "ann", "once-2", off.ID); !errors.Is(err, subscribers.ErrTooManySubscriptions) {
		t.Errorf("one more enabled: %v", err)
	}
	if _, err := d.Enable(d.ctx, "ann", "once-3", last.ID); err != nil {
		t.Errorf("one that's active enabled: %v", err)
	}
	if _, err := d.Disable(d.ctx, "ann", "once-4", last.ID, "make room"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Enable(d.ctx, "ann", "once-2", off.ID); err != nil { // the refusal isn't remembered
		t.Errorf("enabled where there's room: %v", err)
	}
	if _, err := d.Create(d.ctx, "ann", "once-1", spec); !errors.Is(err, subscribers.ErrTooManySubscriptions) {
		t.Errorf("made after that: %v", err)
	}
}

// The bus wakes the consumer for what somebody is told of, and for nothing else.
func TestWanted(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	wanted := func(want ...string) {
		t.Helper()
		got, err := d.Wanted(d.ctx)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("wanted %q, want %q: %v", got, want, err)
		}
	}
	disable := func(id uuid.UUID) {
		t.Helper()
		if _, err := d.Disable(d.ctx, "ann", d.key(), id, "not now"); err != nil {
			t.Fatal(err)
		}
	}
	wanted()
	holds := d.subscribe(nil, subscribers.Spec{URL: "https://example.com", Kinds: []string{"hold.*", "order.captured"}})
	wanted("hold.*", "order.captured")
	d.subscribe(nil, subscribers.Spec{URL: "https://example.com", Kinds: []string{"refund.*"}, Event: "gig"})
	wanted("hold.*", "order.captured", "refund.*")
	all := d.subscribe(nil, subscribers.Spec{URL: "https://example.com"})
	wanted("*.*")
	disable(all.ID)
	disable(holds.ID)
	wanted("refund.*")
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	made := d.subscribe(nil, subscribers.Spec{URL: "https://example.com/a", Event: "gig", Kinds: []string{"hold.*"}})
	changed, err := d.Update(d.ctx, "bob", "k", made.ID, subscribers.Change{URL: new("https://example.com/b"), Event: new("")})
	if err != nil || changed.URL != "https://example.com/b" || changed.Event != "" || len(changed.Kinds) != 1 || changed.ChangedBy != "bob" ||
		changed.CreatedBy != "tester" || changed.Secret != "" {
		t.Errorf("changed to %+v: %v", changed, err)
	}
	if _, err := d.Update(d.ctx, "bob", "k2", made.ID, subscribers.Change{Kinds: &[]string{}}); err != nil {
		t.Error(err)
	}
	again, err := d.Update(d.ctx, "bob", "k", made.ID, subscribers.Change{URL: new("https://example.com/b"), Event: new("")})
	if err != nil || !again.Replayed || len(again.Kinds) != 0 {
		t.Errorf("again %+v: %v", again, err)
	}
	if _, err := d.Update(d.ctx, "bob", "k3", uuid.New(), subscribers.Change{}); !errors.Is(err, subscribers.ErrSubscriptionNotFound) {
		t.Errorf("of none: %v", err)
	}
	if _, err := d.Update(d.ctx, "bob", "k3", made.ID, subscribers.Change{URL: new("gopher://x")}); !errors.Is(err, fault.ErrInvalidRequest) {
		t.Errorf("a wrong one: %v", err)
	}
}

// Both secrets sign while they overlap; then, and without an overlap, only the new one.
func TestRotation(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	signatures := func(n int, secret string) int {
		t.Helper()
		r.trust(secret) // the receiver verifies with it
		d.hold("gig", "ann")
		d.fanOut()
		d.await(made.ID, fmt.Sprintf("%d delivered", n))
		list := r.webhooks()
		return len(strings.Fields(list[len(list)-1].header.Get("Webhook-Signature")))
	}
	if n := signatures(1, made.Secret); n != 1 {
		t.Errorf("%d signatures before", n)
	}
	rotated, err := d.Rotate(d.ctx, "ann", "k", made.ID, time.Hour)
	if err != nil || rotated.Secret == "" || rotated.Secret == made.Secret || rotated.OldSecretUntil == nil {
		t.Fatalf("rotated %+v: %v", rotated, err)
	}
	again, err := d.Rotate(d.ctx, "ann", "k", made.ID, time.Hour)
	if err != nil || !again.Replayed || again.Secret != "" {
		t.Errorf("again %+v: %v", again, err)
	}
	if n := signatures(2, made.Secret); n != 2 {
		t.Errorf("%d signatures while they overlap", n)
	}
	signatures(3, rotated.Secret)
	d.exec(`UPDATE subscriptions SET old_until = now()`)
	if n := signatures(4, rotated.Secret); n != 1 {
		t.Errorf("%d signatures after", n)
	}
	leaked, err := d.Rotate(d.ctx, "ann", "k2", made.ID, 0)
	if err != nil || leaked.OldSecretUntil != nil {
		t.Errorf("at once %+v: %v", leaked, err)
	}
	if n := signatures(5, leaked.Secret); n != 1 {
		t.Errorf("%d signatures after one at once", n)
	}
	if _, err := d.Rotate(d.ctx, "ann", "k3", made.ID, subscribers.MaxOverlap+1); !errors.Is(err, fault.ErrInvalidRequest) {
		t.Errorf("too long: %v", err)
	}
}

// A secret whose key is lost is mended by a rotation; an old one whose key is lost is left
// out.
func TestLostSecretKeys(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	another := func() *subscribers.Store {
		t.Helper()
		ring, err := keyring.Parse(keyring.New())
		if err != nil {
			t.Fatal(err)
		}
		return d.process(func(o *subscribers.Options) { o.Ring = ring })
	}
	second := another()
	stop := d.work(second)
	d.hold("gig", "ann")
	d.fanOut()
	pgtest.Until(t, "the fault is in the log", func() bool { return strings.Contains(d.log.String(), "its secret can't be opened") })
	if _, err := second.Try(d.ctx, "ann", "try", made.ID); !errors.Is(err, subscribers.ErrSecretKeysRequired) {
		t.Errorf("a test without the key: %v", err)
	}
	r.trusts(func() string { // what waits is sent as soon as it can be signed
		rotated, err := second.Rotate(d.ctx, "ann", "second", made.ID, time.Hour)
		if err != nil || rotated.OldSecretUntil != nil {
			t.Fatalf("rotated %+v: %v", rotated, err)
		}
		return rotated.Secret
	})
	d.await(made.ID, "1 delivered")
	stop()
	rotated, err := second.Rotate(d.ctx, "ann", "third", made.ID, time.Hour)
	if err != nil || rotated.OldSecretUntil == nil {
		t.Fatalf("rotated again %+v: %v", rotated, err)
	}
	// The old secret's key is lost: as if it had been sealed by the first process.
	d.exec(`UPDATE subscriptions SET old_secret = reverse(encode(old_secret, 'hex'))::bytea`)
	r.trust(rotated.Secret)
	d.work(second)
	d.hold("gig", "bob")
	d.fanOut()
	d.await(made.ID, "2 delivered")
	list := r.webhooks()
	if n := len(strings.Fields(list[len(list)-1].header.Get("Webhook-Signature"))); n != 1 {
		t.Errorf("%d signatures", n)
	}
	if !strings.Contains(d.log.String(), "old secret can't be opened") {
		t.Error("nothing is in the log of an old secret that's lost")
	}
}

// No secret is in the database, in its files, in a log, or in what's listed.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{})
	d.work(d.Store)
	d.hold("gig", "ann")
	d.fanOut()
	d.await(made.ID, "1 delivered")
	rotated, err := d.Rotate(d.ctx, "ann", "k", made.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.trust(rotated.Secret)
	r.answers(status(500))
	d.hold("gig", "ann")
	d.fanOut()
	d.attempted(made.ID, 2)
	texts := []string{d.log.String()}
	for _, table := range column[string](d, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`) {
		texts = append(texts, column[string](d, `SELECT coalesce(string_agg(t::text, E'\n'), '') FROM `+table+` t`)[0])
	}
	list, err := d.List(d.ctx, uuid.Nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	log, err := d.Deliveries(d.ctx, made.ID, subscribers.Filter{Limit: 10})
	if err != nil || len(log) != 2 {
		t.Fatal(log, err)
	}
	texts = append(texts, fmt.Sprintf("%+v", list), fmt.Sprintf("%+v", log))
	d.exec(`CHECKPOINT`)
	for _, pattern := range []string{"base/*/*", "pg_wal/*"} {
		files, err := filepath.Glob(filepath.Join(column[string](d, `SHOW data_directory`)[0], pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil { // a file that's gone meanwhile has nothing
				texts = append(texts, string(text))
			}
		}
	}
	for _, secret := range []string{made.Secret, rotated.Secret} {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{secret, secret[len("whsec_"):], string(raw), fmt.Sprintf("%x", raw), fmt.Sprintf("%x", secret)} {
			for _, text := range texts {
				if strings.Contains(text, form) {
					t.Fatalf("a secret is in %.200q", text)
				}
			}
		}
	}
}
