package httpapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
)

// fieldOf gives the field that an error is about, "" for no error.
func fieldOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e := fault.As(err)
	if !errors.Is(err, fault.ErrInvalidRequest) || len(e.Fields) != 1 || e.Fields[0].Name != "field" {
		t.Fatalf("%v isn't invalid_request with a field", err)
	}
	return e.Fields[0].Value.(string)
}

func TestDecodeNamesTheField(t *testing.T) {
	const line = `{"tier":"ga","quantity":1}`
	tests := []struct{ body, field string }{
		{`{"customer":"c","items":[` + line + `]}`, ""},
		{` {"items" : [ ] , "customer" : "c" } `, ""},
		{`{"customer":"Ümit \u0041"}`, ""},

		{`{"customer":"c","items":[` + line + `,{"tier":"ga","quantity":1.5}]}`, "items[1].quantity"},
		{`{"items":[{"quantity":"2"}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":9223372036854775808}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":-9223372036854775809}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":1e2}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":true}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":null}]}`, "items[0].quantity"},
		{`{"items":[{"quantity":[]}]}`, "items[0].quantity"},
		{`{"items":[{"tier":1}]}`, "items[0].tier"},
		{`{"items":[{"tier":{}}]}`, "items[0].tier"},
		{`{"items":[` + line + `,[]]}`, "items[1]"},
		{`{"items":["ga"]}`, "items[0]"},
		{`{"items":{}}`, "items"},
		{`{"items":null}`, "items"},
		{`{"customer":null}`, "customer"},
		{`{"customer":"a\u0000b"}`, "customer"},
		{`{"customer":"a\nb"}`, "customer"},
		{`{"customer":"\ud800"}`, "body"},

		{`{"customer":"c","custmer":"c"}`, "custmer"},
		{`{"Customer":"c"}`, "Customer"},
		{`{"":1}`, `""`},
		{`{"items":[{"seats":"A-1-1"}]}`, "items[0].seats"},
		{`{"items":[{"seats":["A-1-1",2]}]}`, "items[0].seats[1]"},
		{`{"items":[{"best_available":{"quantity":2,"rows":1}}]}`, "items[0].best_available.rows"},
		{`{"allotment":1}`, "allotment"},
		{`{"code":null}`, "code"},
		{`{"admission_token":"X"}`, "admission_token"},
		{`{"customer":"c","customer":"d"}`, "customer"},
		{`{"items":[{"tier":"a","tier":"a"}]}`, "items[0].tier"},
		{`{"` + strings.Repeat("x", 5000) + `":1}`, strings.Repeat("x", 100) + "…"},

		{``, "body"},
		{` `, "body"},
		{`null`, "body"},
		{`[]`, "body"},
		{`"x"`, "body"},
		{`{`, "body"},
		{`{"customer"`, "body"},
		{`{"customer":`, "body"},
		{`{"customer":"c",}`, "body"},
		{`{"customer":"c" "items":[]}`, "body"},
		{`{"items":[` + line + `,]}`, "body"},
		{`{"items":[` + line, "body"},
		{`{'customer':'c'}`, "body"},
		{`{"customer":"c"}{}`, "body"},
		{`{"customer":"c"} x`, "body"},
		{`{"customer":"c"}]`, "body"},
		{"{\"customer\":\"\xff\"}", "body"},
		{"{\"customer\":\"a\tb\"}", "body"},
		{`{"items":[{"quantity":01}]}`, "body"},
		{`{"items":[{"quantity":+1}]}`, "body"},
		{`{"items":[{"quantity":NaN}]}`, "body"},
		{strings.Repeat(`{"items":[`, 20000), "body"},
		{strings.Repeat(`[`, 60000), "body"},
	}
	for _, test := range tests {
		var r holds.Request
		err := decode([]byte(test.body), &r)
		if got := fieldOf(t, err); got != test.field {
			t.Errorf("%.60s: the error is about %q, want %q (%v)", test.body, got, test.field, err)
		}
	}
}

func TestDecodeOptionalFields(t *testing.T) {
	tests := []struct{ body, field string }{
		{`{"price":{"amount":1,"currency":"USD"}}`, ""},
		{`{"limit_per_customer":3,"name":"x","quantity":4,"tax_rate":"0.07"}`, ""},
		{`{"tax_rate":0.07}`, ""},
		{`{"limit_per_customer":null}`, "limit_per_customer"},
		{`{"price":null}`, "price"},
		{`{"tax_rate":null}`, "tax_rate"},
		{`{"price":{"amount":null}}`, "price.amount"},
		{`{"price":{"amount":1.0}}`, "price.amount"},
		{`{"price":{"sum":1}}`, "price.sum"},
		{`{"tax_rate":[[[`, "body"},
	}
	for _, test := range tests {
		var change buckets.TierChange
		if got := fieldOf(t, decode([]byte(test.body), &change)); got != test.field {
			t.Errorf("%s: the error is about %q, want %q", test.body, got, test.field)
		}
	}
}

// Whatever is accepted is valid JSON, and means the same to encoding/json.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"customer":"c","items":[{"tier":"ga","quantity":1}]}`, `{"customer":"\u0041\\"}`, `{"items":[{}],}`,
		`{"customer":"c","customer":"d"}`, `{"items":[{"quantity":-0}]}`, `{"a":[{"b":null}]}`, "{\"customer\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want holds.Request
		if decode(text, &got) != nil {
			return
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q was accepted: %v", text, err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("%q was read as %s, it's %s", text, a, b)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"customer":"customer-123456","items":[{"tier":"ga","quantity":2}]}`)
	b.ReportAllocs()
	for b.Loop() {
		var r holds.Request
		if err := decode(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}
