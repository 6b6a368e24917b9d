package httpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/quota"
	"github.com/tierledger/tierledger/recon"
	"github.com/tierledger/tierledger/seats"
	"github.com/tierledger/tierledger/subscribers"
	"github.com/tierledger/tierledger/tickets"
)

// defs are all codes that a caller can meet.
func defs() []*fault.Def {
	return slices.Concat([]*fault.Def{fault.ErrInternal, fault.ErrInvalidRequest},
		Defs(), pg.Defs(), ledger.Defs(), buckets.Defs(), seats.Defs(), holds.Defs(),
		payments.Defs(), orders.Defs(), cases.Defs(), recon.Defs(), quota.Defs(), outbox.Defs(), tickets.Defs(), subscribers.Defs())
}

func model(t *testing.T) *v3.Document {
	t.Helper()
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	m, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	return &m.Model
}

// routes gives the routes by method and path.
func routes() map[string]*route {
	all := make(map[string]*route)
	for _, r := range New(Config{}).(*api).routes {
		all[r.method+" "+r.path] = r
	}
	return all
}

func TestDocumentIsOpenAPI(t *testing.T) {
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, problems := v.ValidateDocument(); !ok {
		for _, p := range problems {
			t.Error(p)
		}
	}
}

func TestDocumentHasEveryRoute(t *testing.T) {
	described := make(map[string]bool)
	known := routes()
	for path, item := range model(t).Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			name := strings.ToUpper(method) + " " + path
			described[name] = true
			r, ok := known[name]
			if !ok {
				t.Errorf("%s is described, and isn't a route", name)
				continue
			}
			compare(t, name, r, op)
		}
	}
	err := New(Config{}).(*api).router.Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := r.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := r.GetMethods()
		if name := methods[0] + " " + path; !described[name] {
			t.Errorf("%s isn't described", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// compare holds a route's roles and parameters to its description.
func compare(t *testing.T, name string, r *route, op *v3.Operation) {
	var roles []string
	if node := op.Extensions.GetOrZero("x-roles"); node != nil {
		if err := node.Decode(&roles); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := r.roles.names(); !slices.Equal(got, roles) {
		t.Errorf("%s is for %v, described for %v", name, got, roles)
	}
	var query []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			query = append(query, p.Name)
		}
	}
	if want := slices.Sorted(slices.Values(r.query)); !slices.Equal(slices.Sorted(slices.Values(query)), want) {
		t.Errorf("%s knows the parameters %v, described are %v", name, want, query)
	}
}

func TestDocumentHasEveryCode(t *testing.T) {
	text, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	schemas := model(t).Components.Schemas
	for _, d := range defs() {
		name := ""
		for word := range strings.SplitSeq(d.Code, "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		proxy := schemas.GetOrZero(name)
		if proxy == nil {
			t.Errorf("%s isn't described", d.Code)
			continue
		}
		s := proxy.Schema()
		status := strconv.Itoa(statusOf(d))
		if got := s.Properties.GetOrZero("code").Schema().Const.Value; got != d.Code {
			t.Errorf("%s: described as %s", d.Code, got)
		}
		if got := s.Properties.GetOrZero("status").Schema().Const.Value; got != status {
			t.Errorf("%s: described with %s, is %s", d.Code, got, status)
		}
		var example map[string]any
		if err := s.Example.Decode(&example); err != nil || example["title"] != d.Title {
			t.Errorf("%s: the example's title is %v, the code's %q (%v)", d.Code, example["title"], d.Title, err)
		}
		if row := explained(d, s); !strings.Contains(string(text), row) {
			t.Errorf("docs/errors.md should have a line beginning %s", row)
		}
	}
	rows := strings.Count(string(text), `<a id="`)
	if rows != len(defs()) {
		t.Errorf("docs/errors.md explains %d codes, there are %d", rows, len(defs()))
	}
}

// explained is how a code's line in docs/errors.md begins.
func explained(d *fault.Def, s *base.Schema) string {
	var fields []string
	for name := range s.Properties.KeysFromOldest() {
		switch {
		case name == "status" || name == "code":
		case slices.Contains(s.Required, name):
			fields = append(fields, "`"+name+"`")
		default:
			fields = append(fields, "*`"+name+"`*")
		}
	}
	list := strings.Join(fields, ", ")
	if list != "" {
		list += " "
	}
	return `| <a id="` + d.Code + "\"></a>`" + d.Code + "` | " + strconv.Itoa(statusOf(d)) + " | " + list + "| "
}

// The contract's order; TestHoldRefusalOrder and TestCheckoutRefusals hold the service
// to it.
var (
	holdRefusals = []string{
		"event_not_found", "invalid_code", "allotment_not_found", "allotment_closed", "code_required", "not_on_sale",
		"section_not_found", "tier_not_found", "seat_not_found", "seats_required", "invalid_quantity", "limit_exceeded",
		"code_used_up", "seat_unavailable", "not_together", "temporarily_held", "sold_out", "overloaded",
	}
	checkoutRefusals = []string{
		"hold_not_found", "hold_expired", "hold_confirmed", "payment_in_progress", "too_late", "price_changed",
		"limit_exceeded", "too_many_operations", "too_many_checkouts", "provider_unavailable",
	}
)

func TestRefusalsDocumentedInOrder(t *testing.T) {
	text, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := model(t).Paths.PathItems
	for _, op := range []struct {
		refusals []string
		path     string
		defs     []*fault.Def
	}{
		{holdRefusals, "/v1/events/{event}/holds", holds.Defs()},
		{holdRefusals, "/v1/events/{event}/holds", seats.Defs()},
		{checkoutRefusals, "/v1/holds/{hold_id}/checkout", orders.Defs()},
	} {
		want := "`" + strings.Join(op.refusals, "`, `") + "`."
		if got := strings.Join(strings.Fields(string(text)), " "); !strings.Contains(got, want) {
			t.Errorf("docs/errors.md doesn't give the order %s", want)
		}
		if want := strings.Join(op.refusals, ", "); !strings.Contains(paths.GetOrZero(op.path).Post.Description, want) {
			t.Errorf("the description of POST %s doesn't give the order %s", op.path, want)
		}
		var declared []string
		for _, d := range op.defs {
			declared = append(declared, d.Code)
		}
		wanted := slices.DeleteFunc(slices.Clone(declared), func(code string) bool { return !slices.Contains(op.refusals, code) })
		order := slices.DeleteFunc(slices.Clone(op.refusals), func(code string) bool { return !slices.Contains(declared, code) })
		if !slices.Equal(wanted, order) {
			t.Errorf("the package's Defs has the order %v, want %v", wanted, order)
		}
	}
}

func TestExamplesAreAsDescribed(t *testing.T) {
	m := model(t)
	check := func(name string, schema *base.SchemaProxy, decode func(any) error) {
		var value any
		if err := decode(&value); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		ok, problems := schema_validation.NewSchemaValidator().ValidateSchemaBytes(schema.Schema(), text)
		for _, p := range problems {
			t.Errorf("%s: example %s isn't as described: %v", name, text, p.SchemaValidationErrors)
		}
		if !ok && len(problems) == 0 {
			t.Errorf("%s: example %s isn't as described", name, text)
		}
	}
	media := func(name string, content *orderedmap.Map[string, *v3.MediaType]) {
		for c := range content.ValuesFromOldest() {
			if c.Example != nil {
				check(name, c.Schema, c.Example.Decode)
			}
		}
	}
	for path, item := range m.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.RequestBody != nil {
				media(method+" "+path, op.RequestBody.Content)
			}
			for status, r := range op.Responses.Codes.FromOldest() {
				media(method+" "+path+" "+status, r.Content)
			}
		}
	}
	for name, schema := range m.Components.Schemas.FromOldest() {
		if example := schema.Schema().Example; example != nil {
			check(name, schema, example.Decode)
		}
	}
}

// Titles and details are for people: codes and fields must be findable by machine.
func TestCodesAreWellFormed(t *testing.T) {
	seen := make(map[string]bool)
	for _, d := range defs() {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(d.Code) || seen[d.Code] {
			t.Errorf("%s isn't snake_case, or isn't unique", d.Code)
		}
		seen[d.Code] = true
		if statusOf(d) == 0 || d.Title == "" {
			t.Errorf("%s has no status or no title", d.Code)
		}
	}
}
