package keyring

import (
	"crypto/ed25519"
	"encoding/base64"
)

// JWK is the public half of a key's signer, as a JSON Web Key (RFC 7517) of the kind that
// RFC 8037 has for Ed25519.
type JWK struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	Algorithm string `json:"alg"` // EdDSA
	Use       string `json:"use"` // sig
	ID        string `json:"kid"`
	X         string `json:"x"` // the public key, in base64url
}

// KeySet is a JSON Web Key Set.
type KeySet struct {
	Keys []JWK `json:"keys"`
}

// KeySet gives the public keys of the ring, the one in use first.
func (r Ring) KeySet() KeySet {
	set := KeySet{Keys: make([]JWK, len(r))}
	for i := range r {
		set.Keys[i] = r[i].JWK()
	}
	return set
}

// JWK gives the key that verifies what the key signs.
func (k *Key) JWK() JWK {
	public := k.Signer.Public().(ed25519.PublicKey)
	return JWK{"OKP", "Ed25519", "EdDSA", "sig", k.ID, base64.RawURLEncoding.EncodeToString(public)}
}
