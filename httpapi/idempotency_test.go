package httpapi

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	tests := []struct {
		value, key string
		ok         bool
	}{
		{`abc`, `abc`, true},
		{`"abc"`, `abc`, true},
		{`a"b`, `a"b`, true},
		{`"a\"b\\c"`, `a"b\c`, true},
		{``, ``, true},
		{`""`, ``, true},
		{strings.Repeat("k", 255), strings.Repeat("k", 255), true},
		{`"` + strings.Repeat("k", 255) + `"`, strings.Repeat("k", 255), true},
		{strings.Repeat("k", 256), ``, false},
		{`"` + strings.Repeat("k", 256) + `"`, ``, false},
		{`a b`, ``, false},
		{`"a b"`, ``, false},
		{`schlüssel`, ``, false},
		{"a\x7f", ``, false},
		{`"`, ``, false},
		{`"abc`, ``, false},
		{`"abc";p=1`, ``, false},
		{`"a"b"`, ``, false},
		{`"a\b"`, ``, false},
		{`"abc\"`, ``, false},
	}
	for _, test := range tests {
		key, ok := parseKey(test.value)
		if ok != test.ok || ok && key != test.key {
			t.Errorf("%.20s is read as %.20q %t, want %.20q %t", test.value, key, ok, test.key, test.ok)
		}
	}
}
