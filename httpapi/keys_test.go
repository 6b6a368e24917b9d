package httpapi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadKeysNamesTheLine(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	tests := []struct{ line, says string }{
		{"shop booking", "2 words"},
		{"shop booking sha256:" + strings.Repeat("ab", 32) + " more", "4 words"},
		{"shop cashier " + digest, `"cashier"`},
		{"shop booking, " + digest, `"booking,"`},
		{"sh/op booking " + digest, `"sh/op"`},
		{strings.Repeat("x", 65) + " booking " + digest, "1 to 64"},
		{"system booking " + digest, "reserved"},
		{"loopback booking " + digest, "reserved"},
		{"shop booking " + strings.Repeat("ab", 32), "sha256:"},
		{"shop booking sha256:" + strings.Repeat("ab", 31), "64 hexadecimal"},
		{"shop booking sha256:" + strings.Repeat("xy", 32), "64 hexadecimal"},
		{"shop booking " + digest + "\nother booking " + digest, "the same key as shop's"},
	}
	for _, test := range tests {
		_, err := LoadKeys(write(t, "# keys\n\n"+test.line+"\n"))
		line := fmt.Sprintf("line %d: ", 3+strings.Count(test.line, "\n"))
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), line) {
			t.Errorf("%s: got %v, want %s… %s", test.line, err, line, test.says)
		}
	}
	if _, err := LoadKeys(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that isn't there was loaded")
	}
}

func TestReloadKeepsKeysWhenTheFileIsWrong(t *testing.T) {
	oldKey, oldLine, err := NewKey("shop", "booking")
	if err != nil {
		t.Fatal(err)
	}
	newKey, newLine, err := NewKey("shop", "booking", "auditor")
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, oldLine)
	keys, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return keys.Reload()
	}
	valid := func(key string) bool { _, ok := keys.find(key); return ok }

	if err := replace(oldLine + "\n" + newLine); err != nil || !valid(oldKey) || !valid(newKey) {
		t.Errorf("while a key is replaced both should be valid (%v)", err)
	}
	if err := replace(newLine + "\nnonsense"); err == nil || !valid(oldKey) || !valid(newKey) {
		t.Errorf("a wrong file should change nothing (%v)", err)
	}
	if err := replace(newLine); err != nil || valid(oldKey) || !valid(newKey) {
		t.Errorf("after the replacement only the new key should be valid (%v)", err)
	}
	if who, _ := keys.find(newKey); who.principal != "shop" || !slices.Equal(who.roles.names(), []string{"booking", "auditor"}) {
		t.Errorf("the key is %v's", who)
	}
}

func TestNewKey(t *testing.T) {
	one, line, err := NewKey("shop", "booking")
	if err != nil {
		t.Fatal(err)
	}
	other, _, _ := NewKey("shop", "booking")
	if one == other || strings.Contains(line, one) || !strings.HasPrefix(one, keyPrefix) {
		t.Errorf("got the keys %s and %s with the line %s", one, other, line)
	}
	for _, bad := range [][]string{{"shop"}, {"shop", "cashier"}, {"", "booking"}, {"system", "booking"}, {"a b", "booking"}} {
		if _, _, err := NewKey(bad[0], bad[1:]...); err == nil {
			t.Errorf("a key was made for %q", bad)
		}
	}
}
