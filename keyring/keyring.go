// Package keyring keeps the service's own secret. Everything secret of ours is made of it:
// the key that signs tickets, and the key that seals what is stored and must not be read.
// Several secrets make a ring: the first is used, the others still open and verify.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	prefix = "tlk_" // so that a scanner for leaked secrets knows one
	size   = 32     // bytes of a secret
)

// Key is what one secret gives.
type Key struct {
	// ID names the key in what it signed or sealed; it says nothing of the secret.
	ID string
	// Signer signs tickets (Ed25519, RFC 8032).
	Signer ed25519.PrivateKey

	aead cipher.AEAD
}

// Ring is one key or several, the one in use first. The empty ring seals nothing.
type Ring []Key

// New makes a secret in its written form.
func New() string {
	b := make([]byte, size)
	rand.Read(b) // never fails: it ends the program instead
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Parse reads secrets in their written form: tlk_ and 32 bytes in base64url. The error
// tells which is wrong, never what it is.
func Parse(texts ...string) (Ring, error) {
	ring := make(Ring, 0, len(texts))
	for i, text := range texts {
		coded, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
		secret, err := base64.RawURLEncoding.DecodeString(coded)
		if !ok || err != nil || len(secret) != size {
			return nil, fmt.Errorf("secret %d: must be %s and %d bytes in base64url; `tierledger keys secret` makes one", i+1, prefix, size)
		}
		key, err := derive(secret)
		if err != nil {
			return nil, err
		}
		ring = append(ring, key)
	}
	return ring, nil
}

// derive makes the keys of a secret, each for one purpose (HKDF, RFC 5869).
func derive(secret []byte) (Key, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "tierledger ticket signing 1", ed25519.SeedSize)
	if err != nil {
		return Key{}, fmt.Errorf("derive a key: %w", err)
	}
	seal, err := hkdf.Key(sha256.New, secret, nil, "tierledger sealing 1", size)
	if err != nil {
		return Key{}, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(seal)
	if err != nil {
		return Key{}, fmt.Errorf("derive a key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return Key{}, fmt.Errorf("derive a key: %w", err)
	}
	signer := ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(signer.Public().(ed25519.PublicKey))
	return Key{ID: base64.RawURLEncoding.EncodeToString(sum[:9]), Signer: signer, aead: aead}, nil
}

// Errors of a ring.
var (
	ErrEmpty  = errors.New("keyring: no secret is configured")
	ErrSealed = errors.New("keyring: no secret of the ring opens it")
)

// Seal encrypts and authenticates a text (AES-256-GCM) for a purpose and place, which
// must be given again to open it.
func (r Ring) Seal(text []byte, place string) ([]byte, error) {
	if len(r) == 0 {
		return nil, ErrEmpty
	}
	return r[0].aead.Seal(nil, nil, text, []byte(place)), nil
}

// Open gives the text that was sealed for a place, by any key of the ring; ErrSealed.
func (r Ring) Open(sealed []byte, place string) ([]byte, error) {
	for _, k := range r {
		if text, err := k.aead.Open(nil, nil, sealed, []byte(place)); err == nil {
			return text, nil
		}
	}
	return nil, ErrSealed
}
