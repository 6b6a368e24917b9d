package httpapi

import (
	"net/http"
	"testing"
)

func TestTraceID(t *testing.T) {
	const (
		trace  = "4bf92f3577b34da6a3ce929d0e0e4736"
		parent = "-00f067aa0ba902b7"
		zeros  = "00000000000000000000000000000000"
	)
	tests := map[string]string{
		"00-" + trace + parent + "-01":                            trace,
		"00-" + trace + parent + "-00":                            trace,
		"01-" + trace + parent + "-01":                            trace,
		"cc-" + trace + parent + "-01-later":                      trace,
		"00-" + trace + parent + "-01-later":                      "",
		"ff-" + trace + parent + "-01":                            "",
		"00-" + zeros + parent + "-01":                            "",
		"00-" + trace + "-0000000000000000-01":                    "",
		"00-" + trace[1:] + parent + "-01":                        "",
		"00-" + trace + parent:                                    "",
		"00-" + trace + parent + "-1":                             "",
		"0-" + trace + parent + "-01":                             "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"": "",
	}
	for header, want := range tests {
		r := &http.Request{Header: http.Header{"Traceparent": {header}}}
		if got := traceID(r); got != want {
			t.Errorf("%s has the trace id %q, want %q", header, got, want)
		}
	}
	twice := &http.Request{Header: http.Header{"Traceparent": {"00-" + trace + parent + "-01", "00-" + trace + parent + "-01"}}}
	if got := traceID(twice); got != "" {
		t.Errorf("two headers have the trace id %q", got)
	}
}
