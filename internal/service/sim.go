package service

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// NewSecret makes a secret that a simulated provider signs its webhooks with.
func NewSecret() (payments.Secrets, error) {
	key := make([]byte, 32)
	rand.Read(key) // it never fails
	return payments.ParseSecrets("whsec_" + base64.StdEncoding.EncodeToString(key))
}

// PayWith makes a simulated provider the one that orders are paid with, and serves it
// below /sim. Its webhooks go to this service, signed with the secrets.
func (c *Config) PayWith(provider *sim.Server, secrets payments.Secrets) {
	c.Sim = provider
	c.Providers = func(self string) ([]payments.Provider, error) {
		if err := provider.SetWebhookURL(self + "/v1/webhooks/sim"); err != nil {
			return nil, err
		}
		client, err := payments.NewClient(payments.Options{URL: self + simPrefix, Secrets: secrets})
		return []payments.Provider{client}, err
	}
}
