package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/pb33f/jsonschema/v6"
	"github.com/pb33f/libopenapi/datamodel"

	"github.com/tierledger/tierledger/outbox"
)

// schemas are those of the served documents, which refer to each other by their places.
type schemas struct {
	compiler *jsonschema.Compiler
	events   map[string]any // asyncapi.yaml
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

// published gives the schemas of what is published.
var published = sync.OnceValues(func() (*schemas, error) {
	s := &schemas{compiler: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema)}
	s.compiler.DefaultDraft(jsonschema.Draft7) // what AsyncAPI's schemas are a superset of
	s.compiler.AssertFormat()
	for _, name := range []string{"asyncapi.yaml", "openapi.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		info, err := datamodel.ExtractSpecInfo(text)
		if err != nil {
			return nil, err
		}
		if err := info.GetSpecJSONError(); err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(*info.GetSpecJSONBytes()))
		if err != nil {
			return nil, err
		}
		if s.events == nil {
			s.events = document.(map[string]any)
		}
		if err := s.compiler.AddResource("https://tierledger.test/"+name, document); err != nil {
			return nil, err
		}
	}
	return s, nil
})

// of compiles the schema at a place of asyncapi.yaml.
func (s *schemas) of(place string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiled[place] == nil {
		schema, err := s.compiler.Compile("https://tierledger.test/asyncapi.yaml#" + place)
		if err != nil {
			return nil, err
		}
		s.compiled[place] = schema
	}
	return s.compiled[place], nil
}

// check compares an event, as it's published, with the message that asyncapi.yaml has for
// its kind. The schemas are closed: what they don't know is wrong.
func (s *schemas) check(e *outbox.Event) error {
	schema, err := s.of("/components/messages/" + e.Kind + "/payload")
	if err != nil {
		return fmt.Errorf("%s isn't described: %w", e.Kind, err)
	}
	text := e.Append(nil)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s isn't as described: %w", text, err)
	}
	return nil
}

// entries reads all entries of a database as events.
func entries(ctx context.Context, url string) ([]outbox.Event, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT journal_id, seq, id, kind, at, data FROM entries ORDER BY journal_id, seq")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e outbox.Event, err error) {
		err = row.Scan(&e.Journal, &e.Seq, &e.ID, &e.Kind, &e.At, &e.Data)
		return e, err
	})
}

// described checks that every entry of a database would be published as asyncapi.yaml
// says. Every world ends with it.
func described(ctx context.Context, url string) error {
	s, err := published()
	if err != nil {
		return err
	}
	events, err := entries(ctx, url)
	for i := range events {
		err = errors.Join(err, s.check(&events[i]))
	}
	return err
}

// kinds reads the kinds of entries from the constants of the packages that write them.
func kinds(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, folder := range []string{"ledger", "buckets", "seats", "quota", "holds", "payments", "cases", "orders", "recon"} {
		names, err := filepath.Glob("../" + folder + "/*.go")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has no sources (%v)", folder, err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Kind") && len(spec.Values) == 1 {
					literal, ok := spec.Values[0].(*ast.BasicLit)
					if !ok {
						t.Fatalf("%s in %s isn't a literal", spec.Names[0].Name, name)
					}
					kind, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, kind)
				}
				return true
			})
		}
	}
	slices.Sort(list)
	return list
}

func TestEveryKindIsDescribed(t *testing.T) {
	s, err := published()
	if err != nil {
		t.Fatal(err)
	}
	want := kinds(t)
	channel := member(s.events, "channels.journal").(map[string]any)
	var listed []string
	for _, kind := range member(channel, "parameters.kind.enum").([]any) {
		listed = append(listed, kind.(string))
	}
	for what, got := range map[string][]string{
		"components.messages":                   slices.Sorted(maps.Keys(member(s.events, "components.messages").(map[string]any))),
		"channels.journal.messages":             slices.Sorted(maps.Keys(channel["messages"].(map[string]any))),
		"channels.journal.parameters.kind.enum": slices.Sorted(slices.Values(listed)),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", what, got, want)
		}
	}
	for _, kind := range want {
		message := s.events["components"].(map[string]any)["messages"].(map[string]any)[kind].(map[string]any)
		if message["name"] != outbox.Type(kind) {
			t.Errorf("the message of %s has the name %s, want %s", kind, message["name"], outbox.Type(kind))
		}
		e := outbox.Event{Journal: 1, Seq: 2, ID: uuid.New(), Kind: kind, At: time.Now()}
		if err := s.check(&e); err != nil {
			t.Errorf("without data: %v", err)
		}
		if e.Data = json.RawMessage(`{"unheard_of":1}`); s.check(&e) == nil {
			t.Errorf("%s may have what isn't described", kind)
		}
	}
}
