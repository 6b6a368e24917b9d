package httpapi

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/tierledger/tierledger/ledger"
)

const (
	keyPrefix    = "tl_" // makes a leaked key easy to recognise
	keyBytes     = 32    // of randomness: nobody guesses one
	digestPrefix = "sha256:"
	maxPrincipal = 64 // bytes
)

// caller is who makes a call.
type caller struct {
	principal string
	roles     roles
}

// Keys tells who may call. The file has one key a line:
//
//	principal role[,role…] sha256:HEX
//
// HEX is the SHA-256 of the key; the key itself is nowhere. Empty lines and lines
// that begin with # are skipped. Two lines of one principal make two keys valid at
// once, so that a key can be replaced without an outage.
type Keys struct {
	path string
	list atomic.Pointer[[]keyLine]
}

type keyLine struct {
	caller
	digest [sha256.Size]byte
}

// LoadKeys reads a file of keys. The error names the line that is wrong.
func LoadKeys(path string) (*Keys, error) {
	k := &Keys{path: path}
	return k, k.Reload()
}

// Reload reads the file again. When it's wrong the keys stay as they were.
func (k *Keys) Reload() error {
	file, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer file.Close()
	var list []keyLine
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		line, err := parseKeyLine(text)
		for i := range list {
			if err == nil && list[i].digest == line.digest {
				err = fmt.Errorf("the same key as %s's", list[i].principal)
			}
		}
		if err != nil {
			return fmt.Errorf("keys: %s line %d: %w", k.path, n, err)
		}
		list = append(list, line)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("keys: %s: %w", k.path, err)
	}
	k.list.Store(&list)
	return nil
}

func parseKeyLine(text string) (keyLine, error) {
	var line keyLine
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return line, fmt.Errorf("want principal, roles and %sHEX, got %d words", digestPrefix, len(fields))
	}
	if err := checkPrincipal(fields[0]); err != nil {
		return line, err
	}
	set, ok := parseRoles(fields[1])
	if !ok {
		return line, unknownRole(fields[1])
	}
	text, ok = strings.CutPrefix(fields[2], digestPrefix)
	digest, err := hex.DecodeString(text)
	if !ok || err != nil || len(digest) != sha256.Size {
		return line, fmt.Errorf("want %s and %d hexadecimal digits", digestPrefix, 2*sha256.Size)
	}
	line.caller = caller{fields[0], set}
	copy(line.digest[:], digest)
	return line, nil
}

func unknownRole(list string) error {
	return fmt.Errorf("%q isn't a list of roles; they are %s", list, strings.Join(roleNames, ", "))
}

// checkPrincipal allows names that stand unquoted in files and logs, except those
// under which the program itself makes commands.
func checkPrincipal(name string) error {
	if name == ledger.SystemPrincipal || name == loopbackPrincipal {
		return fmt.Errorf("principal %s is reserved", name)
	}
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-@", r)
	}
	if name == "" || len(name) > maxPrincipal || strings.IndexFunc(name, bad) >= 0 {
		return fmt.Errorf("principal %q: want 1 to %d letters, digits or . _ - @", name, maxPrincipal)
	}
	return nil
}

// find tells whose key it is. It compares with every line, each in constant time,
// so that how long it takes tells nothing.
func (k *Keys) find(key string) (who caller, ok bool) {
	digest := sha256.Sum256([]byte(key))
	for i := range *k.list.Load() {
		line := &(*k.list.Load())[i]
		if subtle.ConstantTimeCompare(digest[:], line.digest[:]) == 1 {
			who, ok = line.caller, true
		}
	}
	return who, ok
}

// NewKey makes a key for a principal with roles, and its line for the file. The
// key can't be found out from the line: show it once, keep it nowhere.
func NewKey(principal string, roleNames ...string) (key, line string, err error) {
	if err := checkPrincipal(principal); err != nil {
		return "", "", err
	}
	list := strings.Join(roleNames, ",")
	if _, ok := parseRoles(list); !ok {
		return "", "", unknownRole(list)
	}
	var random [keyBytes]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	digest := sha256.Sum256([]byte(key))
	return key, fmt.Sprintf("%s %s %s%x", principal, list, digestPrefix, digest), nil
}
