package subscribers

import (
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/payments"
)

// Status is the state of a subscription.
type Status string

// The states of a subscription.
const (
	Active   Status = "active"
	Disabled Status = "disabled"
)

// Subscription is who is told of which entries, as its row and as callers see it. Its
// secrets aren't here.
type Subscription struct {
	ID             uuid.UUID  `json:"subscription_id"`
	URL            string     `json:"url"`
	Kinds          []string   `json:"kinds"`           // none: all
	Event          string     `json:"event,omitempty"` // "": all
	Description    string     `json:"description,omitempty"`
	Status         Status     `json:"status"`
	Reason         string     `json:"reason,omitempty"`           // why it's disabled
	OldSecretUntil *time.Time `json:"old_secret_until,omitempty"` // the secret before the last rotation signs too
	ActiveSince    time.Time  `json:"active_since"`               // entries from before aren't told
	CreatedBy      string     `json:"created_by"`
	CreatedAt      time.Time  `json:"created_at"`
	ChangedBy      string     `json:"changed_by"`
	ChangedAt      time.Time  `json:"changed_at"`
}

// Limits of subscriptions.
const (
	maxActive      = 1000 // each fan-out and each look for due deliveries goes over all of them
	maxKinds       = 50
	maxKind        = 64 // bytes
	maxDescription = 200
	// MaxOverlap is how long two secrets may sign: it's for a rotation, not for good.
	MaxOverlap = 7 * 24 * time.Hour
	// DefaultOverlap is how long they do when nobody says.
	DefaultOverlap = 24 * time.Hour
)

// Spec is a subscription as it's asked for.
type Spec struct {
	URL         string   `json:"url"`
	Kinds       []string `json:"kinds,omitempty"` // such as hold.placed or order.*; none: all
	Event       string   `json:"event,omitempty"` // "": all
	Description string   `json:"description,omitempty"`
}

// Change is what of a subscription shall change; what's nil stays.
type Change struct {
	URL         *string   `json:"url,omitempty"`
	Kinds       *[]string `json:"kinds,omitempty"`
	Event       *string   `json:"event,omitempty"` // "": all
	Description *string   `json:"description,omitempty"`
}

// change gives a spec as the change that sets all of it.
func (s *Spec) change() Change {
	return Change{&s.URL, &s.Kinds, &s.Event, &s.Description}
}

// kind is how a kind is written, or the beginning of several.
var kind = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?$`)

// validate refuses what no state could make right. Errors: ErrInvalidRequest with the
// field, ErrAddressNotAllowed.
func (c *Change) validate(allowPrivate bool) error {
	if c.URL != nil {
		if err := checkURL(*c.URL, allowPrivate); err != nil {
			return err
		}
	}
	if c.Kinds != nil {
		if len(*c.Kinds) > maxKinds {
			return fault.BadField("kinds", "must be at most %d", maxKinds)
		}
		for _, k := range *c.Kinds {
			if len(k) > maxKind || !kind.MatchString(k) {
				return fault.BadField("kinds", "must be kinds of entries such as order.captured, or their beginnings such as order.*")
			}
		}
	}
	if c.Event != nil && *c.Event != "" && !buckets.ValidID(*c.Event) {
		return fault.BadField("event", "can't be an event's name")
	}
	if c.Description != nil && (len(*c.Description) > maxDescription || !utf8.ValidString(*c.Description)) {
		return fault.BadField("description", "must have at most %d bytes", maxDescription)
	}
	return nil
}

const (
	secretPrefix = "whsec_" // so that a scanner for leaked secrets knows one
	secretSize   = 32       // bytes
)

// newSecret makes a secret in its written form, and seals it for a subscription.
// ErrSecretKeysRequired.
func newSecret(ring keyring.Ring, id uuid.UUID) (text string, sealed []byte, err error) {
	if len(ring) == 0 {
		return "", nil, ErrSecretKeysRequired.Because("start it with --secret-keys")
	}
	b := make([]byte, secretSize)
	rand.Read(b) // never fails: it ends the program instead
	text = secretPrefix + base64.StdEncoding.EncodeToString(b)
	sealed, err = ring.Seal([]byte(text), id.String())
	return text, sealed, err
}

// openSecrets gives what signs for a subscription: its secret, and the old one unless
// that's nil. An old one that can't be opened is left out, and lost says why.
func openSecrets(ring keyring.Ring, id uuid.UUID, secret, old []byte) (secrets payments.Secrets, lost, err error) {
	text, err := ring.Open(secret, id.String())
	if err != nil {
		return secrets, nil, err
	}
	texts := []string{string(text)}
	if old != nil {
		if text, lost = ring.Open(old, id.String()); lost == nil {
			texts = append(texts, string(text))
		}
	}
	secrets, err = payments.ParseSecrets(texts...)
	return secrets, lost, err
}
