package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/keyring"
)

// What keys secret prints is a secret that serve takes, another each time.
func TestKeysSecret(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 2 {
		code, stdout, stderr := runHere(t, "keys", "secret")
		var secret, kid string
		if _, err := fmt.Sscanf(stdout, "secret: %s\nkid:    %s\n", &secret, &kid); err != nil || code != exitOK || stderr != "" {
			t.Fatalf("%d %q %q: %v", code, stdout, stderr, err)
		}
		ring, err := keyring.Parse(secret)
		if err != nil || ring[0].ID != kid {
			t.Errorf("%s isn't %v: %v", kid, ring.KeySet(), err)
		}
		seen[secret] = true
	}
	if len(seen) != 2 {
		t.Error("it's the same secret again")
	}
	if code, stdout, stderr := runHere(t, "keys", "secret", "surplus"); code != exitUsage || stdout != "" || !strings.Contains(stderr, "surplus") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}
