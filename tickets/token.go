package tickets

import (
	"fmt"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
)

// tokenType is the header typ of a token: what else the key may ever sign isn't taken for a
// ticket (RFC 8725, section 3.11).
const tokenType = "ticket+jwt"

// claims are what a token says: what never changes about the ticket.
type claims struct {
	jwt.RegisteredClaims             // jti: the ticket's id; iat: when it was issued, in whole seconds
	Event                string      `json:"event"`
	Tier                 ledger.Unit `json:"tier"`
	Seat                 string      `json:"seat,omitempty"`
	Order                uuid.UUID   `json:"order"`
	Number               int         `json:"number"`
}

// sign makes the token of a ticket. The same key makes the same one again.
func sign(key *keyring.Key, t *Ticket) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{ID: t.ID.String(), IssuedAt: jwt.NewNumericDate(t.IssuedAt)},
		Event:            t.Event, Tier: t.Tier, Seat: t.Seat, Order: t.Order, Number: t.Number,
	})
	token.Header["typ"], token.Header["kid"] = tokenType, key.ID
	text, err := token.SignedString(key.Signer)
	if err != nil {
		return "", fmt.Errorf("sign ticket %s: %w", t.ID, err)
	}
	return text, nil
}
