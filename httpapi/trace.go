package httpapi

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// maxRequestID bounds an id that a caller gives, in bytes.
const maxRequestID = 128

// requestID takes the caller's X-Request-Id if it's fit for headers and logs, and
// makes one otherwise.
func requestID(r *http.Request) string {
	if values := r.Header["X-Request-Id"]; len(values) == 1 && fitRequestID(values[0]) {
		return values[0]
	}
	return uuid.Must(uuid.NewV7()).String()
}

func fitRequestID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxRequestID
}

// traceID gives the trace id of a traceparent header (W3C Trace Context, level 1);
// "" when there's none, or none that is valid.
func traceID(r *http.Request) string {
	values := r.Header["Traceparent"]
	if len(values) != 1 {
		return ""
	}
	parts := strings.Split(values[0], "-")
	// Versions after 00 may add parts; ff isn't one.
	if len(parts) < 4 || parts[0] == "00" && len(parts) > 4 || parts[0] == "ff" {
		return ""
	}
	for i, size := range []int{2, 32, 16, 2} {
		if len(parts[i]) != size || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return ""
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return parts[1]
}
