package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envPrefix begins the name of every setting in the environment and in files.
const envPrefix = "TIERLEDGER_"

// settingNames are the flags that may also be given in the environment or in a
// --config file. Flags that only make sense at one call aren't among them.
func settingNames() []string {
	return []string{
		"database-url", "nats-url", "listen", "keys-file", "tls-cert", "tls-key",
		"commit-conns", "read-conns", "lanes", "sweep-every", "work-every", "drain-timeout", "log-level",
		"nats-dir", "stream", "stream-max-age", "stream-max-bytes", "stream-replicas", "secret-keys",
		"webhooks-allow-private",
		"provider-name", "provider-url", "provider-timeout", "provider-secrets",
		"url", "key", "key-file",
	}
}

// envName is how a flag is called outside the command line.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configFlag adds --config to a command, which then calls settle.
func configFlag(c *cobra.Command) {
	c.Flags().String("config", "", "`FILE` of "+envPrefix+"NAME=value lines; flags and the environment come first")
}

// settle gives every flag that wasn't given its value from the environment, else
// from the --config file, else it keeps its default. Its errors name the setting
// and where it comes from, never its value if that may be a secret.
func settle(flags *pflag.FlagSet) error {
	file := map[string]string{}
	path, err := flags.GetString("config")
	if err != nil {
		return err
	}
	if path != "" {
		if file, err = readSettings(path); err != nil {
			return err
		}
	}
	for _, name := range settingNames() {
		f := flags.Lookup(name)
		if f == nil || f.Changed {
			continue
		}
		source, value := "the environment", os.Getenv(envName(name))
		if value == "" {
			source, value = path, file[envName(name)]
		}
		if value == "" { // set to nothing is not set, as compose files do it
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return usagef("%s in %s isn't valid: %w", envName(name), source, errors.Unwrap(err)) // err itself has the value
		}
	}
	return nil
}

// readSettings reads a file of NAME=value lines, as systemd and docker do: empty
// lines and lines that begin with # are skipped, one pair of quotes around a value
// is dropped, nothing is expanded. An unknown or repeated name is an error, so
// that a slip of the pen doesn't leave a default in force.
func readSettings(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var known []string
	for _, name := range settingNames() {
		known = append(known, envName(name))
	}
	found := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		_, twice := found[name]
		switch {
		case !ok:
			return nil, usagef("%s:%d: not a NAME=value line", path, i+1)
		case !slices.Contains(known, name):
			return nil, usagef("%s:%d: there's no setting %s", path, i+1, name)
		case twice:
			return nil, usagef("%s:%d: %s is given twice", path, i+1, name)
		}
		found[name] = unquote(strings.TrimSpace(value))
	}
	return found, nil
}

// unquote drops one pair of quotes around a value.
func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}
