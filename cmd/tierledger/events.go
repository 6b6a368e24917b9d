package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/chartfile"
	"github.com/tierledger/tierledger/seats"
)

// eventsCommand makes the events command, which only has commands below it.
func eventsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "events",
		Short:   "Work on the events of a running service",
		Long:    `The commands below work over the API, on a service that runs anywhere.`,
		Example: `  tierledger events import arena.csv --event arena-2027`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(importCommand())
	return c
}

// importOptions are the flags of events import.
type importOptions struct {
	service remote
	event   string
	dryRun  bool
	asJSON  bool
}

// importCommand makes the events import command.
func importCommand() *cobra.Command {
	o := &importOptions{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Load the seats of an event from a file",
		Long: `import reads a file of seats and loads them into an event: CSV with a line per seat,
JSON with a chart as the API takes it, or JSON with a whole event and its chart below
"seating"; then the event is created too. docs/charts.md has the formats. - reads standard
input. All that is wrong with a file is told with line numbers, and nothing is sent.

The same file can be imported again: nothing changes then. A chart is loaded as a whole or
not at all. The seats' tiers must be there, with "seated": true.

The key needs the role operator or admin; dev wants none from this machine. Give it in a
file or in TIERLEDGER_KEY; it's never shown.

Exit codes: 0 loaded, or loaded before, 1 the file is wrong or it was refused, 2 wrong usage.`,
		Example: `  tierledger events import arena.csv --event arena-2027 --dry-run
  tierledger events import arena-2027.json --url https://tickets.example.com --key-file operator.key
  seats-from-drawing arena.dxf | tierledger events import - --event arena-2027`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := settle(c.Flags()); err != nil {
				return err
			}
			if err := o.service.prepare(); err != nil {
				return err
			}
			return o.run(c, args[0])
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.event, "event", "", "`EVENT` to load the seats into; a file with a whole event names it itself")
	flags.BoolVar(&o.dryRun, "dry-run", false, "read and check the file, and send nothing")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	o.service.flags(c)
	configFlag(c)
	return c
}

// imported is what an import has done.
type imported struct {
	Event    string              `json:"event,omitempty"`
	Created  bool                `json:"created"`          // the event, by this import
	Already  bool                `json:"already_imported"` // by an earlier one: nothing has changed
	DryRun   bool                `json:"dry_run"`
	Version  int64               `json:"version,omitempty"`
	Seats    int                 `json:"seats"`
	Sections []seats.SectionView `json:"sections"`
}

// run reads the file, sends what it says and tells what came of it.
func (o *importOptions) run(c *cobra.Command, name string) error {
	file, err := readChart(name, c.InOrStdin())
	var wrong *chartfile.Problems
	if errors.As(err, &wrong) {
		tellProblems(c.ErrOrStderr(), name, wrong)
		return errTold
	}
	if err != nil {
		return err
	}
	done := imported{Event: o.event, DryRun: o.dryRun, Seats: file.Chart.Size(), Sections: file.Chart.View()}
	switch {
	case file.Event != "" && o.event != "" && file.Event != o.event:
		return usagef("--event %s: the file is of event %s", o.event, file.Event)
	case file.Event != "":
		done.Event = file.Event
	case o.event == "" && !o.dryRun:
		return usagef("which event? The file doesn't say; give --event")
	}
	if !o.dryRun {
		if err := o.send(c.Context(), c.ErrOrStderr(), file, &done); err != nil {
			return err
		}
	}
	return tellImported(c.OutOrStdout(), done, o.asJSON)
}

// readChart reads a file, or in for "-".
func readChart(name string, in io.Reader) (*chartfile.File, error) {
	if name == "-" {
		return chartfile.Read(in)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	file, err := chartfile.Read(f)
	var wrong *chartfile.Problems
	if err != nil && !errors.As(err, &wrong) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return file, err
}

// tellProblems prints what is wrong with a file, a problem a line.
func tellProblems(w io.Writer, name string, p *chartfile.Problems) {
	if name == "-" {
		name = "standard input"
	}
	for _, problem := range p.List {
		fmt.Fprintf(w, "%s: %s\n", name, problem)
	}
	if p.More {
		fmt.Fprintf(w, "%s: and more; these are the first %d\n", name, len(p.List))
	}
}

// send creates the event, if the file has one, and loads the chart. Each is done under a
// key of its own that comes from what it says, so a repeat goes on where it stopped.
func (o *importOptions) send(ctx context.Context, stderr io.Writer, file *chartfile.File, done *imported) error {
	show, end := tellSending(stderr)
	defer end()
	if file.Spec != nil {
		create := ask{method: http.MethodPost, path: "/v1/events", key: file.EventKey(), body: file.Spec}
		got, _, err := o.service.deliver(ctx, create, func(string) {})
		if err != nil {
			return fmt.Errorf("create event %s: %w", done.Event, err)
		}
		done.Created = !got.replayed
	}
	chart, err := json.Marshal(file.Chart)
	if err != nil {
		return err
	}
	if len(chart) > seats.MaxChartBytes {
		return fmt.Errorf("the chart takes %d MiB and the service takes %d", len(chart)>>20+1, seats.MaxChartBytes>>20)
	}
	load := ask{method: http.MethodPost, path: eventPath(done.Event, "/chart"), key: file.ChartKey(done.Event), body: chart}
	got, _, err := o.service.deliver(ctx, load, func(state string) {
		show("%s seats: %s", thousands(int64(done.Seats)), state)
	})
	var refused *refusal
	switch {
	case errors.As(err, &refused) && done.Created:
		return fmt.Errorf("event %s was created, its seats weren't loaded: %w", done.Event, err)
	case errors.As(err, &refused) && refused.status == http.StatusNotFound && refused.Code == "event_not_found":
		return fmt.Errorf("%w; create event %s first, or import it with its chart", err, done.Event)
	case err != nil:
		return fmt.Errorf("load the seats of event %s: %w", done.Event, err)
	}
	done.Already, done.Sections = got.replayed, nil // as the service tells
	if err := json.Unmarshal(got.body, done); err != nil {
		return fmt.Errorf("load the seats of event %s: the answer isn't the API's: %w", done.Event, err)
	}
	return nil
}

// tellSending keeps one line up to date on a terminal; end clears it.
func tellSending(w io.Writer) (show func(format string, args ...any), end func()) {
	if !isTerminal(w) {
		return func(string, ...any) {}, func() {}
	}
	const clear = "\r\x1b[K"
	return func(format string, args ...any) { fmt.Fprintf(w, clear+format, args...) }, func() { fmt.Fprint(w, clear) }
}

// tellImported prints what an import has done, for people or as one JSON object.
func tellImported(w io.Writer, d imported, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		return out.Encode(d)
	}
	_, err := io.WriteString(w, importedTable(d))
	return err
}

// importedTable lays an import out, a section a line.
func importedTable(d imported) string {
	var b strings.Builder
	all := thousands(int64(d.Seats)) + " seats"
	if d.Event != "" {
		fmt.Fprintf(&b, "event %s: ", d.Event)
	}
	switch {
	case d.DryRun:
		fmt.Fprintf(&b, "%s in the file; nothing was sent\n\n", all)
	case d.Already:
		fmt.Fprintf(&b, "already imported, nothing has changed; %s since version %d\n\n", all, d.Version)
	case d.Created:
		fmt.Fprintf(&b, "created, and %s loaded; version %d\n\n", all, d.Version)
	default:
		fmt.Fprintf(&b, "%s loaded; version %d\n\n", all, d.Version)
	}
	tier := len("tier")
	for _, s := range d.Sections {
		tier = max(tier, len(s.Tier))
	}
	line := func(section, of, rows, seats, accessible string) {
		fmt.Fprintf(&b, "%-16s  %-*s%8s%9s%12s\n", section, tier, of, rows, seats, accessible)
	}
	line("section", "tier", "rows", "seats", "accessible")
	rows, accessible := 0, 0
	for _, s := range d.Sections {
		line(s.Section, string(s.Tier), thousands(int64(s.Rows)), thousands(int64(s.Seats)), thousands(int64(s.Accessible)))
		rows, accessible = rows+s.Rows, accessible+s.Accessible
	}
	line("all", "", thousands(int64(rows)), thousands(int64(d.Seats)), thousands(int64(accessible)))
	return b.String()
}
