package chartfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// document is a JSON file whose chart is below a pointer.
type document struct {
	text []byte
	base jsontext.Pointer // "" or "/seating"
}

// readJSON reads a chart or an event with one from JSON. It's nil when that can't be
// read far enough to be checked.
func (f *File) readJSON(text []byte, found *finder) source {
	d := &document{text: text}
	members, err := split(text)
	if err != nil {
		d.report(found, "", err)
		return nil
	}
	chart := text
	if seating := slices.IndexFunc(members, func(m member) bool { return m.name == "seating" }); seating >= 0 {
		d.base, chart = "/seating", members[seating].value
		if !f.readSpec(d, slices.Delete(slices.Clone(members), seating, seating+1), found) {
			return nil
		}
	} else if !slices.ContainsFunc(members, func(m member) bool { return m.name == "sections" }) {
		found.add(0, `it has neither "sections", as a chart, nor "seating", as an event with its chart`)
		return nil
	}
	before := len(found.list)
	f.readChart(d, chart, found)
	if len(found.list) > before {
		return nil
	}
	if d.base != "" {
		f.checkTiers(d, found)
	}
	return d
}

// member is a member of an object.
type member struct {
	name  string
	value jsontext.Value
}

// split gives the members of the only object in a text.
func split(text []byte) (list []member, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := d.ReadToken(); err != nil { // its brace
		return nil, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		list = append(list, m)
	}
	if _, err := d.ReadToken(); err != nil { // the other brace
		return nil, err
	}
	switch _, err := d.ReadToken(); err {
	case io.EOF:
		return list, nil
	case nil:
		return nil, errors.New("there's more after the object")
	default:
		return nil, err
	}
}

// readSpec keeps the event without its chart; false if it has no name.
func (f *File) readSpec(d *document, members []member, found *finder) bool {
	var b bytes.Buffer
	e := jsontext.NewEncoder(&b)
	// A buffer takes everything, and the values were read from valid JSON.
	_ = e.WriteToken(jsontext.BeginObject)
	for _, m := range members {
		_ = e.WriteToken(jsontext.String(m.name))
		_ = e.WriteValue(m.value)
	}
	_ = e.WriteToken(jsontext.EndObject)
	f.Spec = bytes.TrimSpace(b.Bytes())
	for _, m := range members {
		if m.name == "event" && json.Unmarshal(m.value, &f.Event) != nil {
			found.add(d.line("/event"), "event: must be a string")
			return false
		}
	}
	if f.Event == "" {
		found.add(0, "event: is missing")
	}
	return f.Event != ""
}

// readChart reads the chart row by row, so that a mistake in one doesn't hide those in
// others.
func (f *File) readChart(d *document, text []byte, found *finder) {
	type part struct {
		Section string           `json:"section"`
		Name    string           `json:"name"`
		Tier    ledger.Unit      `json:"tier"`
		Rows    []jsontext.Value `json:"rows"`
	}
	var chart struct {
		Sections []jsontext.Value `json:"sections"`
	}
	strict := json.RejectUnknownMembers(true)
	if err := json.Unmarshal(text, &chart, strict); err != nil {
		d.report(found, d.base, err)
		return
	}
	for i, text := range chart.Sections {
		at := jsontext.Pointer(fmt.Sprintf("%s/sections/%d", d.base, i))
		var p part
		if err := json.Unmarshal(text, &p, strict); err != nil {
			d.report(found, at, err)
			continue
		}
		s := seats.Section{Section: p.Section, Name: p.Name, Tier: p.Tier, Rows: make([]seats.Row, len(p.Rows))}
		for j, text := range p.Rows {
			if err := json.Unmarshal(text, &s.Rows[j], strict); err != nil {
				d.report(found, jsontext.Pointer(fmt.Sprintf("%s/rows/%d", at, j)), err)
			}
			if len(found.list) > MaxProblems {
				return
			}
		}
		f.Chart.Sections = append(f.Chart.Sections, s)
	}
}

// checkTiers finds sections whose tier the event hasn't, or doesn't sell by seat. The
// service would find them too, but only when the event is there.
func (f *File) checkTiers(d *document, found *finder) {
	var spec struct {
		Tiers []struct {
			Tier   ledger.Unit `json:"tier"`
			Seated bool        `json:"seated"`
		} `json:"tiers"`
	}
	if json.Unmarshal(f.Spec, &spec) != nil {
		return // the service tells what is wrong with it
	}
	seated := map[ledger.Unit]bool{}
	for _, t := range spec.Tiers {
		seated[t.Tier] = t.Seated
	}
	told := map[ledger.Unit]bool{"": true}
	for i, s := range f.Chart.Sections {
		yes, ok := seated[s.Tier]
		if yes || told[s.Tier] {
			continue
		}
		told[s.Tier] = true
		at := d.line(jsontext.Pointer(fmt.Sprintf("%s/sections/%d/tier", d.base, i)))
		if ok {
			found.add(at, `tier: %s isn't sold by seat; it needs "seated": true, and no quantity`, s.Tier)
		} else {
			found.add(at, "tier: the event has no tier %s", s.Tier)
		}
	}
}

// report tells where the value below a pointer can't be read.
func (d *document) report(found *finder, base jsontext.Pointer, err error) {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic) && base == "": // it was read as a whole, up to there
		line := 1 + bytes.Count(d.text[:min(int(syntactic.ByteOffset), len(d.text))], []byte("\n"))
		found.add(line, "isn't valid JSON: %v", syntactic.Err)
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		at := base + semantic.JSONPointer
		found.add(d.line(at), "%s: isn't a field of a chart", d.name(at))
	case errors.As(err, &semantic):
		at := base + semantic.JSONPointer
		found.add(d.line(at), "%s: can't be %s", d.name(at), kind(semantic))
	default:
		found.add(d.line(base), "%v", err)
	}
}

// kind says what was found where something else belongs.
func kind(err *json.SemanticError) string {
	switch err.JSONKind {
	case '"':
		return "a string"
	case '0':
		return "this number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "that"
}

// find implements source.
func (d *document) find(spots []spot) []place {
	pointers := make([]jsontext.Pointer, len(spots))
	for i, at := range spots {
		p := d.base + "/sections"
		for _, part := range []struct {
			name  string
			index int
		}{{"", at.section}, {"/rows", at.row}, {"/seats", at.seat}} {
			if part.index >= 0 {
				p += jsontext.Pointer(fmt.Sprintf("%s/%d", part.name, part.index))
			}
		}
		if at.section >= 0 && at.field != "" {
			p += jsontext.Pointer("/" + at.field)
		}
		pointers[i] = p
	}
	list := make([]place, len(spots))
	for i, line := range d.lines(pointers) {
		list[i] = place{line, d.name(pointers[i])}
	}
	return list
}

// name writes a pointer as the API does, from the chart on.
func (d *document) name(p jsontext.Pointer) string {
	var b strings.Builder
	for part := range jsontext.Pointer(strings.TrimPrefix(string(p), string(d.base))).Tokens() {
		switch {
		case strings.Trim(part, "0123456789") == "":
			fmt.Fprintf(&b, "[%s]", part)
		case b.Len() > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	if b.Len() == 0 {
		return strings.TrimPrefix(string(p), "/")
	}
	return b.String()
}

func (d *document) line(p jsontext.Pointer) int { return d.lines([]jsontext.Pointer{p})[0] }

// lines tells on which line the value of each pointer begins; for what isn't there, the
// line of what it would be in. The text is valid JSON.
func (d *document) lines(pointers []jsontext.Pointer) []int {
	offsets := map[jsontext.Pointer]int{}
	for _, p := range pointers {
		for ; p != ""; p = p.Parent() {
			offsets[p] = -1
		}
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(d.text))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			break
		}
		if k := token.Kind(); k == '}' || k == ']' {
			continue
		}
		// A name has the pointer of its value, and begins before it.
		p := decoder.StackPointer()
		if at, ok := offsets[p]; ok && at < 0 {
			offsets[p] = int(decoder.InputOffset())
		}
	}
	list := make([]int, len(pointers))
	for i, p := range pointers {
		for ; p != "" && offsets[p] < 0; p = p.Parent() {
		}
		list[i] = 1 + bytes.Count(d.text[:max(0, offsets[p])], []byte("\n"))
	}
	return list
}
