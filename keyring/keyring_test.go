package keyring

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

func parse(t *testing.T, texts ...string) Ring {
	t.Helper()
	ring, err := Parse(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A secret gives the same keys for good: what's signed and sealed with it outlives releases.
func TestASecretGivesTheSameKeys(t *testing.T) {
	secret := "tlk_" + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	got, err := json.Marshal(parse(t, secret).KeySet())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"-qgtqAumMZko","x":"tMH51KGGJysc85XAMn4ZwT6_akASXb8zmkc3pBky4Ds"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The key and the signature of RFC 8037, appendix A.
func TestTheVectorsOfRFC8037(t *testing.T) {
	seed := decode(t, "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	key := Key{ID: "Ed25519 of the RFC", Signer: ed25519.NewKeyFromSeed(seed)}
	if j := key.JWK(); j.X != "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" || j.Type != "OKP" || j.Curve != "Ed25519" {
		t.Errorf("%+v", j)
	}
	const signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
	const want = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
	got, err := jwt.SigningMethodEdDSA.Sign(signed, key.Signer)
	if err != nil || base64.RawURLEncoding.EncodeToString(got) != want {
		t.Errorf("signed to %s (%v)", base64.RawURLEncoding.EncodeToString(got), err)
	}
	if err := jwt.SigningMethodEdDSA.Verify(signed, decode(t, want), key.Signer.Public()); err != nil {
		t.Error(err)
	}
}

func TestNewSecretsAreSecrets(t *testing.T) {
	a, b := New(), New()
	if a == b || !strings.HasPrefix(a, "tlk_") {
		t.Errorf("%s %s", a, b)
	}
	ring := parse(t, a, " "+b+"\n") // as files and lists have them
	if len(ring) != 2 || ring[0].ID == ring[1].ID || len(ring[0].ID) != 12 {
		t.Errorf("%+v", ring.KeySet())
	}
	if set := ring.KeySet(); set.Keys[0].ID != ring[0].ID || set.Keys[1].ID != ring[1].ID {
		t.Errorf("%+v", set)
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	good := New()
	for name, text := range map[string]string{
		"none":           "",
		"without prefix": strings.TrimPrefix(good, "tlk_"),
		"an API key":     strings.Replace(good, "tlk_", "tl_", 1),
		"too short":      good[:len(good)-4],
		"too long":       good + "AAAA",
		"not base64url":  good[:len(good)-1] + "+",
		"padded":         good + "=",
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := Parse(good, text)
			if err == nil || ring != nil || !strings.HasPrefix(err.Error(), "secret 2:") {
				t.Fatalf("%v %v", ring, err)
			}
			if secret := strings.TrimPrefix(text, "tlk_"); secret != "" && strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells it: %v", err)
			}
		})
	}
}

func TestSeal(t *testing.T) {
	first, second := New(), New()
	one, both, other := parse(t, first), parse(t, second, first), parse(t, second)
	sealed, err := one.Seal([]byte("a secret"), "place 1")
	if err != nil || bytes.Contains(sealed, []byte("a secret")) {
		t.Fatalf("%q %v", sealed, err)
	}
	again, err := one.Seal([]byte("a secret"), "place 1")
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("sealed alike (%v)", err)
	}
	for name, c := range map[string]struct {
		ring   Ring
		sealed []byte
		place  string
		want   error
	}{
		"the same ring":         {one, sealed, "place 1", nil},
		"after a change of key": {both, sealed, "place 1", nil},
		"another place":         {one, sealed, "place 2", ErrSealed},
		"another key":           {other, sealed, "place 1", ErrSealed},
		"no key":                {nil, sealed, "place 1", ErrSealed},
		"changed":               {one, append(bytes.Clone(sealed[:len(sealed)-1]), sealed[len(sealed)-1]^1), "place 1", ErrSealed},
		"cut":                   {one, sealed[:5], "place 1", ErrSealed},
		"nothing":               {one, nil, "place 1", ErrSealed},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := c.ring.Open(c.sealed, c.place)
			if !errors.Is(err, c.want) || c.want == nil && string(text) != "a secret" || c.want != nil && text != nil {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	if _, err := Ring(nil).Seal(nil, ""); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}
