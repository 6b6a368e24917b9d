// Package tierledger_test holds the shape of the program: who may know whom.
package tierledger_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tierledger/tierledger/"

// graph lists every package, and the project's packages that it imports outside of
// its tests. An import may only point upward in the list: a later fact may know an
// earlier one. A new edge is a decision, so it's made here too.
const graph = `
fault
migrations
internal/pg         fault
internal/wait
ledger              fault internal/pg
buckets             fault internal/pg ledger
seats               fault internal/pg ledger buckets
quota               fault internal/pg internal/wait ledger buckets
holds               fault internal/pg internal/wait ledger buckets seats quota
payments            fault ledger buckets
payments/sim        internal/wait ledger payments
cases               fault internal/pg ledger buckets
orders              fault internal/pg internal/wait ledger buckets seats holds payments cases
recon               fault internal/pg ledger buckets payments cases orders
outbox              fault internal/pg internal/wait ledger
outbox/jetstream    internal/wait ledger outbox
keyring
tickets             fault internal/pg ledger buckets orders keyring outbox
subscribers         fault internal/pg internal/wait ledger buckets payments keyring outbox
httpapi             fault ledger buckets seats quota holds payments cases orders recon outbox tickets subscribers

internal/verify     internal/pg ledger buckets seats quota holds cases orders recon outbox tickets subscribers
internal/export     internal/pg ledger buckets
internal/chartfile  fault ledger seats
internal/service    migrations internal/pg internal/wait ledger buckets seats quota holds payments payments/sim cases orders recon outbox outbox/jetstream keyring tickets subscribers httpapi
internal/embedded
internal/pgtest     fault migrations internal/pg ledger payments payments/sim internal/verify internal/service internal/embedded
internal/load
internal/sale       internal/wait internal/load
internal/bench      fault migrations internal/pg internal/wait ledger buckets quota holds payments/sim outbox outbox/jetstream keyring internal/verify internal/service internal/embedded internal/load internal/sale

cmd/tierledger      migrations internal/wait ledger buckets seats quota payments payments/sim outbox keyring httpapi internal/verify internal/export internal/chartfile internal/service internal/embedded internal/sale internal/bench
`

func TestImportsPointUpward(t *testing.T) {
	allowed := make(map[string][]string)
	var above []string
	for line := range strings.Lines(graph) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, imports := fields[0], fields[1:]
		for _, i := range imports {
			if !slices.Contains(above, i) {
				t.Errorf("the graph lets %s import %s, which isn't above it", name, i)
			}
		}
		allowed[name] = imports
		above = append(above, name)
	}

	found := make(map[string][]string)
	for _, f := range sources(t, ".") {
		name := path.Dir(f.name)
		if found[name] == nil {
			found[name] = []string{}
		}
		for _, spec := range f.syntax.Imports {
			text, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if i, ours := strings.CutPrefix(text, module); ours && !slices.Contains(found[name], i) {
				found[name] = append(found[name], i)
			}
		}
	}
	for name, imports := range found {
		if _, ok := allowed[name]; !ok {
			t.Errorf("package %s isn't in the graph: give it its place in deps_test.go", name)
			continue
		}
		for _, i := range imports {
			if !slices.Contains(allowed[name], i) {
				t.Errorf("%s imports %s, an edge that the graph in deps_test.go doesn't have", name, i)
			}
		}
		for _, i := range allowed[name] {
			if !slices.Contains(imports, i) {
				t.Errorf("the graph in deps_test.go has an edge that's gone: %s no longer imports %s", name, i)
			}
		}
	}
	for name := range allowed {
		if found[name] == nil {
			t.Errorf("the graph in deps_test.go has a package that's gone: %s", name)
		}
	}
}

// measuring lists the files of the domain that may read the process's clock: to
// measure how long something took, or to give up on it. What is decided goes by the
// database's clock, which comes with the batch.
var measuring = []string{
	"ledger/batch.go", "ledger/committer.go",
	"seats/charts.go", "seats/follow.go", "seats/house.go", "seats/maps.go", "seats/snapshot.go", // how old what's remembered is
	"outbox/publish.go", "outbox/jetstream/feed.go", // how long publishing took, and how long to wait
	"subscribers/line.go", "subscribers/send.go", "subscribers/work.go", // how long a call took, and when a subscriber is tried again
}

func TestProcessClockDecidesNothing(t *testing.T) {
	for _, domain := range []string{"ledger", "buckets", "seats", "quota", "holds", "cases", "orders", "recon", "outbox", "tickets", "subscribers"} {
		for _, f := range sources(t, domain) {
			if slices.Contains(measuring, f.name) {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				from, ok := s.X.(*ast.Ident)
				if ok && from.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
					t.Errorf("%s: time.%s: decide by the database's clock (ledger.State.Now)",
						f.positions.Position(s.Pos()), s.Sel.Name)
				}
				return true
			})
		}
	}
}

// source is a file that isn't a test.
type source struct {
	name      string // slash-separated, from the root
	syntax    *ast.File
	positions *token.FileSet
}

// sources parses the Go files in and below a folder, whatever system they are for.
func sources(t *testing.T, root string) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		positions := token.NewFileSet()
		syntax, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		list = append(list, source{filepath.ToSlash(name), syntax, positions})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("no Go files in %s", root)
	}
	return list
}
