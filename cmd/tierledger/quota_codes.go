package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// codesAtOnce is how many access codes go in one request: so many fit in a body, however
// long they are.
const codesAtOnce = 500

// codeUses is an access code as the API takes it.
type codeUses struct {
	Code    string `json:"code"`
	MaxUses int64  `json:"max_uses"`
}

// codesCommand makes the quota codes command.
func codesCommand() *cobra.Command {
	o := &apiOptions{}
	var codes codeFlags
	c := &cobra.Command{
		Use:   "codes EVENT ALLOTMENT [CODE=USES ...]",
		Short: "Add access codes to an allotment",
		Long: `codes adds access codes to an allotment, each with how many holds it's good for. Upper and
lower case are the same, and a code is given once in an event. An allotment that was made
with codes, or with --code-required, sells to nobody without one; to another, which sells to
whoever names it, they're only a way in.

Many codes go in several requests; a repeat under the same key adds those that are missing.
With --json there's a line for the answer to each request.

Exit codes: 0 added, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota codes hall press PRESS-1=50 PRESS-2=50
  tierledger quota codes hall fans --codes-file fans.codes
  make-codes 20000 | sed 's/$/=1/' | tierledger quota codes hall fans --codes-file -`,
		Args: cobra.MinimumNArgs(2),
	}
	codes.flags(c)
	return o.changing(c, func(c *cobra.Command, args []string) error {
		codes.given = append(codes.given, args[2:]...)
		list, err := codes.read(c.InOrStdin())
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return usagef("which codes? Give them as CODE=USES, or a --codes-file")
		}
		return o.addCodes(c, args[0], args[1], list, 0)
	})
}

// codeFlags are access codes on the command line and in a file.
type codeFlags struct {
	given []string
	file  string
}

func (f *codeFlags) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.given, "code", nil, "`CODE=USES`: an access code and for how many holds; may be repeated")
	c.Flags().StringVar(&f.file, "codes-file", "", "`FILE` with a CODE=USES a line; - reads standard input")
}

// read gives all codes, those of the command line first. One that's given twice is left to
// the service to refuse.
func (f *codeFlags) read(stdin io.Reader) (list []codeUses, err error) {
	for _, text := range f.given {
		code, uses, err := pair("code", text, "PRESS-1=50")
		if err != nil {
			return nil, err
		}
		list = append(list, codeUses{code, uses})
	}
	if f.file == "" {
		return list, nil
	}
	in, name := stdin, "standard input"
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, fmt.Errorf("read access codes: %w", err)
		}
		defer file.Close() // it was only read
		in, name = file, f.file
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		code, uses, err := pair(fmt.Sprintf("%s:%d", name, n), line, "PRESS-1=50")
		if err != nil {
			return nil, err
		}
		list = append(list, codeUses{code, uses})
	}
	return list, lines.Err()
}

// pair reads NAME=N.
func pair(where, text, example string) (name string, n int64, err error) {
	name, digits, _ := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	n, err = strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 1 || name == "" {
		return "", 0, usagef("%s: %q isn't a name and a number from 1 on, such as %s", where, text, example)
	}
	return name, n, nil
}

// addCodes adds the codes that come after the first so many, in requests that each have a
// key made of the command's: a repeat of the command repeats them.
func (o *apiOptions) addCodes(c *cobra.Command, event, allotment string, codes []codeUses, before int) error {
	path := eventPath(event, "/allotments/%s/codes", url.PathEscape(allotment))
	for from := before; from < len(codes); from += codesAtOnce {
		body := struct {
			Codes []codeUses `json:"codes"`
		}{codes[from:min(len(codes), from+codesAtOnce)]}
		q := o.change(http.MethodPost, event, path, body)
		if from > 0 {
			q.key += "/codes/" + strconv.Itoa(from)
		}
		answer, err := o.send(c, q, nil)
		if err != nil && from > 0 {
			return fmt.Errorf("%d of %d codes were added: %w", from, len(codes), o.goesOn(err))
		}
		if err != nil {
			return err
		}
		if o.asJSON {
			if err := tellJSON(c.OutOrStdout(), answer); err != nil {
				return err
			}
		}
	}
	if o.asJSON {
		return nil
	}
	_, err := io.WriteString(c.OutOrStdout(), wrap(fmt.Sprintf("allotment %s of event %s has %s more", allotment, event,
		counted(len(codes)-before, "access code")), "  "))
	return err
}
