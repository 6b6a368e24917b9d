package pgtest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Prepare prepares every statement of a package against the migrated schema, so
// that a wrong name or type is found without running it. Files are the package's
// SQL files: each constant in them whose name begins with sql must be given.
func Prepare(t testing.TB, db *DB, statements map[string]string, files ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, name := range sqlConstants(t, files) {
		text, ok := statements[name]
		if !ok {
			t.Errorf("%s isn't among the statements to prepare", name)
			continue
		}
		if _, err := conn.Prepare(ctx, name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sqlConstants lists the constants of files whose names begin with sql.
func sqlConstants(t testing.TB, files []string) (names []string) {
	t.Helper()
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "sql") {
				names = append(names, spec.Names[0].Name)
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Error("no statement was found")
	}
	return names
}
