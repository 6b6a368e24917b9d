package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

func TestDemoExit(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "demo", "--buyers", "80", "--quantity", "50", "--exit")
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, text := range []string{"80  arrived", "temporarily_held", "limit_exceeded", "expired", "captured", "provider:sim",
		" 0 unexplained", "charged once", "each equal to the buyers' receipts", "checks hold"} {
		if !strings.Contains(stdout, text) {
			t.Errorf("the report doesn't say %q:\n%s", text, stdout)
		}
	}
	if !strings.Contains(stderr, "arrived ") {
		t.Errorf("no progress was told: %s", stderr)
	}
}

func TestDemoGoesOn(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo", "--buyers", "10", "--quantity", "100")
	want(t, http.StatusOK, "", "GET", demo.url+"/v1/events/"+demoEvent+"/availability", "", "")
	want(t, http.StatusCreated, "", "POST", demo.url+"/v1/events/"+demoEvent+"/holds", "mine",
		`{"customer":"me","items":[{"tier":"ga","quantity":2}]}`)
	if code := demo.end(syscall.SIGINT); code != exitOK {
		t.Errorf("exit code %d: %s", code, demo.stderr.String())
	}
}
