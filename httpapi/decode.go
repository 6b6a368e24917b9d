package httpapi

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/seats"
)

// maxDepth bounds nesting: no request has more than five levels.
const maxDepth = 16

// maxValues bounds the names, values and brackets of a body: more than the largest chart
// has. What is built of a body takes far more memory than its text.
const maxValues = 25 * seats.MaxSeats

// decode reads a JSON object into the struct that dst points to, strictly: names
// exactly as in the tags and each at most once, integers as integers, nothing that
// is null, text without control characters, nothing after the object. Errors are
// ErrInvalidRequest with the path of the field, such as items[0].quantity.
func decode(text []byte, dst any) error {
	if err := inspect(text); err != nil {
		return err
	}
	err := json.Unmarshal(text, dst, json.RejectUnknownMembers(true))
	var wrong *json.SemanticError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return fault.BadField("body", "can't be read").From(err)
	case errors.Is(err, json.ErrUnknownName):
		return fault.BadField(path(wrong.JSONPointer), "isn't a field that this version supports here")
	case errors.Is(err, strconv.ErrRange):
		return fault.BadField(path(wrong.JSONPointer), "must be an integer of 64 bits")
	}
	return fault.BadField(path(wrong.JSONPointer), "must be %s", kindOf(wrong.GoType))
}

// inspect refuses what is wrong whatever the struct: text that isn't one JSON
// object (RFC 8259, in UTF-8, each name once), nulls, control characters, depth.
func inspect(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	values := 0
	for first := true; ; first = false {
		token, err := d.ReadToken()
		if err == io.EOF && !first {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		values++
		switch kind := token.Kind(); {
		case values > maxValues:
			return fault.BadField("body", "has too many values: a chart of %d seats, the largest, has fewer", seats.MaxSeats)
		case first && kind != '{':
			return fault.BadField("body", "must be an object")
		case kind == 'n':
			return fault.BadField(path(d.StackPointer()), "can't be null")
		case kind == '"' && !plain(token.String()):
			return fault.BadField(path(d.StackPointer()), "must be text without control characters")
		case d.StackDepth() > maxDepth:
			return fault.BadField("body", "is nested too deeply")
		}
	}
}

// malformed says where text stops being JSON.
func malformed(err error) error {
	var wrong *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &wrong):
		return fault.BadField(path(wrong.JSONPointer), "is given twice")
	case errors.As(err, &wrong):
		return fault.BadField("body", "isn't valid JSON: %v at byte %d", wrong.Err, wrong.ByteOffset)
	}
	return fault.BadField("body", "isn't valid JSON: it's empty")
}

// path writes a JSON pointer as people write it; the whole document is "body".
func path(p jsontext.Pointer) string {
	var b strings.Builder
	for name := range p.Tokens() {
		if name != "" && strings.Trim(name, "0123456789") == "" {
			b.WriteString("[" + name + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(clip(name))
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// kindOf says in callers' words what a Go type takes.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "an integer"
}

// plain tells whether s is text that any store and any book can keep: UTF-8
// without control characters or the mark of a broken escape.
func plain(s string) bool {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// clip bounds a name that a caller made up, and makes an empty one visible.
func clip(s string) string {
	const most = 100
	switch {
	case s == "":
		return `""`
	case len(s) <= most:
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
