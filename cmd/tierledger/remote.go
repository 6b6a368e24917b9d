package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// defaultURL is where dev serves.
const defaultURL = "http://127.0.0.1:8080"

// remote is a service that a command calls over HTTP.
type remote struct {
	url     string
	key     string
	keyFile string
	client  http.Client
}

// flags adds how the service is found, and the key for it, to a command.
func (r *remote) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&r.url, "url", defaultURL, "`URL` of the service (or "+envName("url")+")")
	flags.StringVar(&r.keyFile, "key-file", "", "`FILE` that has the API key, and nothing else (or "+envName("key-file")+")")
	flags.StringVar(&r.key, "key", "", "API `KEY`; better in "+envName("key")+" or a file, where nobody sees it")
	c.MarkFlagsMutuallyExclusive("key", "key-file")
}

// prepare checks the settings and reads the key. Its errors don't show the key.
func (r *remote) prepare() error {
	u, err := url.Parse(r.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usagef("url: not a URL such as %s or https://tickets.example.com", defaultURL)
	}
	r.url = strings.TrimRight(r.url, "/")
	if r.key != "" && r.keyFile != "" {
		return usagef("key, key-file: give one of them")
	}
	if r.keyFile != "" {
		text, err := os.ReadFile(r.keyFile)
		if err != nil {
			return fmt.Errorf("read the API key: %w", err)
		}
		if r.key = strings.TrimSpace(string(text)); r.key == "" {
			return usagef("key-file: %s is empty", r.keyFile)
		}
	}
	if strings.ContainsFunc(r.key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return usagef("key, key-file: a key is one word; `tierledger keys new` makes one")
	}
	// The key is for this service: it doesn't follow it anywhere else.
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return nil
}

// refusal is an answer that the service didn't do what was asked.
type refusal struct {
	status    int
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

// Error gives what the service said; for what no service of ours says, the status.
func (r *refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%d %s: is that a tierledger?", r.status, http.StatusText(r.status))
	}
	text := fmt.Sprintf("%d %s", r.status, r.Code)
	if r.Detail != "" {
		text += ": " + r.Detail
	} else if r.Title != "" {
		text += ": " + r.Title
	}
	if r.status >= 500 && r.RequestID != "" {
		text += " (request " + r.RequestID + ")"
	}
	return text
}
