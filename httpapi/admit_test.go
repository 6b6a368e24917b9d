package httpapi

import (
	"net/http"
	"slices"
	"testing"
)

func TestLocal(t *testing.T) {
	tests := []struct {
		peer, host string
		headers    []string
		local      bool
	}{
		{"127.0.0.1:5000", "127.0.0.1:8080", nil, true},
		{"127.0.0.1:5000", "localhost:8080", nil, true},
		{"127.0.0.1:5000", "LOCALHOST", nil, true},
		{"[::1]:5000", "[::1]:8080", nil, true},
		{"[::ffff:127.0.0.1]:5000", "127.0.0.2", nil, true},
		{"127.0.0.1:5000", "localhost:8080", []string{"Origin", "http://localhost:8080", "Sec-Fetch-Site", "same-origin"}, true},
		{"127.0.0.1:5000", "localhost:8080", []string{"Sec-Fetch-Site", "none"}, true},

		{"10.0.0.7:5000", "127.0.0.1:8080", nil, false},
		{"@", "127.0.0.1:8080", nil, false},
		{"127.0.0.1:5000", "", nil, false},
		{"127.0.0.1:5000", "evil.example:8080", nil, false},
		{"127.0.0.1:5000", "localhost.evil.example", nil, false},
		{"127.0.0.1:5000", "192.168.0.2:8080", nil, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Origin", "https://evil.example"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Origin", "http://localhost:3000"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Origin", "null"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"X-Forwarded-For", "10.0.0.7"}, false},
		{"127.0.0.1:5000", "localhost:8080", []string{"Forwarded", "for=10.0.0.7"}, false},
	}
	for _, test := range tests {
		r := &http.Request{RemoteAddr: test.peer, Host: test.host, Header: http.Header{}}
		for pair := range slices.Chunk(test.headers, 2) {
			r.Header.Set(pair[0], pair[1])
		}
		if got := local(r); got != test.local {
			t.Errorf("from %s to %s with %v: local is %t", test.peer, test.host, test.headers, got)
		}
	}
}
