package httpapi

import (
	"strings"

	"github.com/tierledger/tierledger/fault"
)

const (
	headerKey = "Idempotency-Key"
	maxKey    = 255 // characters
)

// key gives the call's idempotency key. It may be raw or a string of RFC 8941:
// abc and "abc" are the same key. Two headers must agree.
func (c *call) key() (string, error) {
	key := ""
	for _, header := range []string{headerKey, "X-Idempotency-Key"} {
		for _, value := range c.request.Header[header] {
			parsed, ok := parseKey(value)
			switch {
			case !ok:
				return "", fault.BadField(headerKey, "must be 1 to %d visible ASCII characters, raw or in quotes", maxKey)
			case key != "" && parsed != key:
				return "", fault.BadField(headerKey, "two different keys are given")
			}
			key = parsed
		}
	}
	if key == "" {
		return "", ErrIdempotencyKeyRequired.Because("send the header %s with a key of your own, the same for every repeat", headerKey)
	}
	return key, nil
}

// parseKey takes the quotes off a key; false when it can't be one. An empty key
// is as good as none.
func parseKey(value string) (string, bool) {
	if strings.HasPrefix(value, `"`) {
		var ok bool
		if value, ok = unescape(value); !ok {
			return "", false
		}
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return "", false
		}
	}
	return value, len(value) <= maxKey
}

// unescape reads a string of RFC 8941, section 3.3.3.
func unescape(quoted string) (string, bool) {
	inner, ok := unquote(quoted)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '"':
			return "", false
		case '\\':
			i++
			if i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(inner[i])
	}
	return b.String(), true
}
