package payments

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Webhooks are signed as Standard Webhooks 1.0 says (standardwebhooks.com): HMAC-SHA256
// over id.timestamp.body. The specification's own library isn't used: it knows one
// secret, reads the process's clock, takes an empty secret, and lets an id contain the
// separator.

// Headers of a webhook.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

const (
	// Tolerance is how far a webhook's timestamp may be from our time, either way. It
	// bounds how long a delivery that was overheard can be replayed.
	Tolerance = 300 * time.Second

	secretPrefix  = "whsec_"
	signVersion   = "v1,"
	minSecret     = 24  // bytes, by the specification
	maxSecret     = 64  // bytes, by the specification
	maxSignatures = 16  // in one header; a sender in rotation sends two
	maxWebhookID  = 255 // bytes; it becomes a key of our rows
)

// Secrets are the signing keys of one webhook endpoint: one, or two while it's changed.
// Both of them sign, and a signature by either verifies.
type Secrets struct{ keys [][]byte }

// ParseSecrets reads secrets in their written form, whsec_ and base64. The error tells
// which is wrong, never what it is.
func ParseSecrets(texts ...string) (Secrets, error) {
	if len(texts) < 1 || len(texts) > 2 {
		return Secrets{}, fmt.Errorf("webhook secrets: need one, or two during a rotation, not %d", len(texts))
	}
	var s Secrets
	for i, text := range texts {
		coded, ok := strings.CutPrefix(text, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
			return Secrets{}, fmt.Errorf("webhook secret %d: must be %s and %d to %d bytes in base64",
				i+1, secretPrefix, minSecret, maxSecret)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// None tells that there's no secret: nothing verifies then, and nothing can be signed.
func (s Secrets) None() bool { return len(s.keys) == 0 }

// Sign sets the headers of a webhook that is sent at a time. An id has no dots.
func (s Secrets) Sign(header http.Header, id string, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	list := make([]string, len(s.keys))
	for i, key := range s.keys {
		list[i] = signVersion + base64.StdEncoding.EncodeToString(mac(key, id, seconds, body))
	}
	header.Set(headerID, id)
	header.Set(headerTimestamp, seconds)
	header.Set(headerSignature, strings.Join(list, " "))
}

// Verify gives the id of a webhook whose headers sign its raw body. Errors, in order:
// ErrWebhookSignatureInvalid, ErrWebhookTimestamp.
func (s Secrets) Verify(header http.Header, body []byte, now time.Time) (id string, err error) {
	id, seconds, at, err := signedHeaders(header)
	if err != nil {
		return "", ErrWebhookSignatureInvalid.Because("%v", err)
	}
	if !s.match(header.Get(headerSignature), id, seconds, body) {
		return "", ErrWebhookSignatureInvalid.Because("no signature in %s fits the body", headerSignature)
	}
	if off := now.Sub(at); off > Tolerance || off < -Tolerance {
		return "", ErrWebhookTimestamp.
			Because("signed at %s, it's %s now", at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)).
			With("tolerance_seconds", int(Tolerance/time.Second))
	}
	return id, nil
}

// match tries every key on every signature, in constant time for each.
func (s Secrets) match(signatures, id, seconds string, body []byte) bool {
	list := strings.Fields(signatures)
	if len(list) > maxSignatures {
		return false
	}
	found := false
	for _, key := range s.keys {
		want := mac(key, id, seconds, body)
		for _, text := range list {
			coded, ok := strings.CutPrefix(text, signVersion)
			if !ok {
				continue // of another version
			}
			got, err := base64.StdEncoding.DecodeString(coded)
			found = err == nil && hmac.Equal(got, want) || found
		}
	}
	return found
}

// signedHeaders reads id and timestamp as they were signed. A dot in the id could move
// the border between id and body, and is refused.
func signedHeaders(header http.Header) (id, seconds string, at time.Time, err error) {
	id, seconds = header.Get(headerID), header.Get(headerTimestamp)
	if id == "" || seconds == "" || header.Get(headerSignature) == "" {
		return "", "", at, fmt.Errorf("the headers %s, %s and %s are required", headerID, headerTimestamp, headerSignature)
	}
	if len(id) > maxWebhookID || strings.Contains(id, ".") || !plain(id, maxWebhookID) {
		return "", "", at, fmt.Errorf("%s must be at most %d bytes without a dot", headerID, maxWebhookID)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != seconds {
		return "", "", at, errors.New(headerTimestamp + " must be a whole number of seconds")
	}
	return id, seconds, time.Unix(n, 0), nil
}

func mac(key []byte, id, seconds string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.", id, seconds)
	h.Write(body)
	return h.Sum(nil)
}
