package tickets_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/orders"
)

// gate verifies a token as a gate does: with the published keys alone.
func gate(set keyring.KeySet, token string) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"})).ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		for _, k := range set.Keys {
			if k.ID == t.Header["kid"] {
				x, err := base64.RawURLEncoding.DecodeString(k.X)
				return ed25519.PublicKey(x), err
			}
		}
		return nil, errors.New("no such key")
	})
	if err == nil && parsed.Header["typ"] != "ticket+jwt" {
		return nil, errors.New("it's no ticket")
	}
	return claims, err
}

// A token says what the ticket is, to whoever has the published keys, and whatever is
// changed of it is noticed.
func TestAGateVerifiesATicket(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "1 ga", "A-1-3")
	b.until(id, orders.Captured)
	b.follow()
	set, err := b.tickets.Keys()
	b.must(err)
	list := b.list(id)
	for _, ticket := range list {
		claims, err := gate(set, ticket.Token)
		if err != nil {
			t.Fatal(err)
		}
		want := jwt.MapClaims{"jti": ticket.ID.String(), "iat": float64(ticket.IssuedAt.Unix()), "event": "gig", "tier": string(ticket.Tier),
			"order": id.String(), "number": float64(ticket.Number)}
		if ticket.Seat != "" {
			want["seat"] = ticket.Seat
		}
		if len(claims) != len(want) {
			t.Errorf("%v, want %v", claims, want)
		}
		for name, value := range want {
			if claims[name] != value {
				t.Errorf("%s is %v, want %v", name, claims[name], value)
			}
		}
	}

	token := list[0].Token
	head, rest, _ := strings.Cut(token, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	code := base64.RawURLEncoding.EncodeToString
	forged, err := keyring.Parse(keyring.New())
	b.must(err)
	for name, c := range map[string]struct {
		set   keyring.KeySet
		token string
	}{
		"another ticket's signature": {set, head + "." + claims + "." + list[1].Token[strings.LastIndex(list[1].Token, ".")+1:]},
		"other claims":               {set, head + "." + code([]byte(`{"event":"gala"}`)) + "." + signature},
		"no algorithm":               {set, code([]byte(`{"alg":"none","kid":"`+b.ring[0].ID+`"}`)) + "." + claims + "."},
		"another key":                {forged.KeySet(), token},
		"another key of that name":   {keyring.KeySet{Keys: []keyring.JWK{renamed(forged, b.ring[0].ID)}}, token},
	} {
		if claims, err := gate(c.set, c.token); err == nil {
			t.Errorf("%s: accepted %v", name, claims)
		}
	}
}

func renamed(ring keyring.Ring, id string) keyring.JWK {
	k := ring[0].JWK()
	k.ID = id
	return k
}

// The same ticket that's signed again gives the same token, and one key's tickets stay good
// after another is in use.
func TestTokensAreForGood(t *testing.T) {
	t.Parallel()
	b := open(t)
	first := b.buy("ann", "sim_ok", "2 ga")
	b.until(first, orders.Captured)
	b.follow()
	issued := b.rows()
	tx, err := b.owner.Begin(b.ctx)
	b.must(err)
	b.exec(`DELETE FROM tickets`)
	b.exec(`DELETE FROM ticketed_orders`)
	b.must(b.tickets.Consumer().Effect(b.ctx, tx, b.events(`kind = 'order.captured'`)))
	if again := b.rows(); again != issued {
		t.Errorf("was    %s\nis now %s", issued, again)
	}
	b.must(tx.Rollback(b.ctx))

	next, err := keyring.Parse(keyring.New())
	b.must(err)
	b.tickets = b.store(append(next, b.ring...))
	second := b.buy("bob", "sim_ok", "1 ga")
	b.until(second, orders.Captured)
	b.follow()
	set, err := b.tickets.Keys()
	b.must(err)
	for token, key := range map[string]string{b.list(first)[0].Token: b.ring[0].ID, b.list(second)[0].Token: next[0].ID} {
		if _, err := gate(set, token); err != nil {
			t.Error(err)
		}
		if _, err := gate(keyring.KeySet{Keys: set.Keys[1:]}, token); (err == nil) != (key == b.ring[0].ID) {
			t.Errorf("the first key alone: %v", err)
		}
	}
}
