package payments_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/payments"
)

// The vector of the specification's own libraries.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorSeconds   = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

	otherSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func secrets(t testing.TB, texts ...string) payments.Secrets {
	t.Helper()
	s, err := payments.ParseSecrets(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignVector(t *testing.T) {
	header := http.Header{}
	secrets(t, vectorSecret).Sign(header, vectorID, time.Unix(vectorSeconds, 0), []byte(vectorBody))
	if got := header.Get("webhook-signature"); got != vectorSignature {
		t.Errorf("signed %s, want %s", got, vectorSignature)
	}
	if header.Get("webhook-id") != vectorID || header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("headers %v", header)
	}
}

// TestVerify includes case P22: a timestamp in the future beyond tolerance.
func TestVerify(t *testing.T) {
	at := time.Unix(vectorSeconds, 0)
	both := secrets(t, otherSecret, vectorSecret)
	signedBy := func(s payments.Secrets, id string) http.Header {
		header := http.Header{}
		s.Sign(header, id, at, []byte(vectorBody))
		return header
	}
	vector := signedBy(secrets(t, vectorSecret), vectorID)
	change := func(name, value string) http.Header {
		header := vector.Clone()
		header.Set(name, value)
		return header
	}
	for _, test := range []struct {
		name   string
		by     payments.Secrets
		header http.Header
		body   string
		now    time.Time
		want   *fault.Def
	}{
		{"the vector", secrets(t, vectorSecret), vector, vectorBody, at, nil},
		{"the second of two secrets", both, vector, vectorBody, at, nil},
		{"signed by both, one known", secrets(t, vectorSecret), signedBy(both, vectorID), vectorBody, at, nil},
		{"signed by both, both known", both, signedBy(both, vectorID), vectorBody, at, nil},
		{"beside another version", secrets(t, vectorSecret),
			change("webhook-signature", "v1a,AAAA v2 "+vectorSignature), vectorBody, at, nil},
		{"before one that doesn't fit", secrets(t, vectorSecret),
			change("webhook-signature", vectorSignature+" v1,AAAA"), vectorBody, at, nil},
		{"300 s old", both, vector, vectorBody, at.Add(300 * time.Second), nil},
		{"300 s ahead", both, vector, vectorBody, at.Add(-300 * time.Second), nil},
		{"older", both, vector, vectorBody, at.Add(301 * time.Second), payments.ErrWebhookTimestamp},
		{"further ahead", both, vector, vectorBody, at.Add(-301 * time.Second), payments.ErrWebhookTimestamp},

		{"another secret", secrets(t, otherSecret), vector, vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"no secret", payments.Secrets{}, vector, vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"tampered body", both, vector, vectorBody + " ", at, payments.ErrWebhookSignatureInvalid},
		{"tampered id", both, change("webhook-id", "msg_2"), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"tampered time", both, change("webhook-timestamp", "1614265331"), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"tampered and old", both, vector, "{}", at.Add(time.Hour), payments.ErrWebhookSignatureInvalid},
		{"time in another form", both, change("webhook-timestamp", "+1614265330"), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"no time", both, change("webhook-timestamp", "soon"), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"signature cut", both, change("webhook-signature", vectorSignature[:20]), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"signature of another version", both,
			change("webhook-signature", "v2"+vectorSignature[2:]), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"no headers", both, http.Header{}, vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"too many signatures", both,
			change("webhook-signature", strings.Repeat(vectorSignature+" ", 17)), vectorBody, at, payments.ErrWebhookSignatureInvalid},
		{"a dot in the id", both, signedBy(both, "msg.1"), vectorBody, at, payments.ErrWebhookSignatureInvalid},
	} {
		id, err := test.by.Verify(test.header, []byte(test.body), test.now)
		switch {
		case test.want == nil && (err != nil || id != vectorID):
			t.Errorf("%s: %q, %v", test.name, id, err)
		case test.want != nil && (!errors.Is(err, test.want) || id != ""):
			t.Errorf("%s: %q, %v, want %s", test.name, id, err, test.want.Code)
		}
	}
}

func TestParseSecrets(t *testing.T) {
	const short = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY="
	for name, texts := range map[string][]string{
		"none":      {},
		"three":     {vectorSecret, otherSecret, vectorSecret},
		"empty":     {""},
		"no prefix": {strings.TrimPrefix(vectorSecret, "whsec_")},
		"no base64": {"whsec_!" + strings.Repeat("A", 31)},
		"23 bytes":  {short},
		"65 bytes":  {"whsec_" + strings.Repeat("A", 86) + "A="},
		"second":    {vectorSecret, short},
	} {
		s, err := payments.ParseSecrets(texts...)
		if err == nil || !s.None() {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "AAECAw") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}
