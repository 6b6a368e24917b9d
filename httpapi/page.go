package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
)

// Limits of a page.
const (
	defaultLimit = 100
	maxLimit     = 500 // a page fits in memory several times over
)

// cursor says where a list goes on, and which list it is. Callers see it as an
// opaque string; what comes back is checked like anything else they send.
type cursor struct {
	Path    string `json:"path"`
	Filters string `json:"filters"` // as an encoded query
	Limit   int    `json:"limit"`
	After   string `json:"after"` // the last item of the page before
}

// page reads limit and cursor. The cursor carries the filters: they needn't be
// repeated, and if they are they must be the same. It fills them in.
func (c *call) page() (cursor, error) {
	filters := maps.Clone(c.query)
	filters.Del("limit")
	filters.Del("cursor")
	p := cursor{Path: c.request.URL.Path, Filters: filters.Encode(), Limit: defaultLimit}
	if text := c.query.Get("cursor"); text != "" {
		given := p
		if err := p.parse(text); err != nil {
			return p, err
		}
		if p.Path != given.Path || len(filters) > 0 && p.Filters != given.Filters {
			return p, fault.BadField("cursor", "belongs to a list with other filters")
		}
	}
	if c.query.Has("limit") {
		limit, err := strconv.Atoi(c.query.Get("limit"))
		if err != nil {
			return p, fault.BadField("limit", "must be 1 to %d", maxLimit)
		}
		p.Limit = limit
	}
	if p.Limit < 1 || p.Limit > maxLimit {
		return p, fault.BadField("limit", "must be 1 to %d", maxLimit)
	}
	var err error
	if c.query, err = c.route.parseQuery(p.Filters); err != nil {
		return p, badCursor()
	}
	return p, nil
}

func (p *cursor) parse(text string) error {
	*p = cursor{}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || decode(body, p) != nil {
		return badCursor()
	}
	return nil
}

// afterID reads the position in a list by id; uuid.Nil at its beginning.
func (p *cursor) afterID() (uuid.UUID, error) {
	if p.After == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(p.After)
	if err != nil {
		return uuid.Nil, badCursor()
	}
	return id, nil
}

func badCursor() error { return fault.BadField("cursor", "isn't one that this list gave") }

// next gives the cursor of the page after the one that ends with an item.
func (p cursor) next(after string) string {
	p.After = after
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// listed answers with a page of the items, of which one more than the limit was
// asked for, so as to know whether there are more. position names an item.
func listed[T any](p cursor, items []T, position func(T) string) (answer, error) {
	view := struct {
		Data       []T     `json:"data"`
		NextCursor *string `json:"next_cursor"`
	}{Data: items}
	if len(items) > p.Limit {
		view.Data = items[:p.Limit]
		view.NextCursor = new(p.next(position(items[p.Limit-1])))
	}
	if view.Data == nil {
		view.Data = []T{}
	}
	return found(view)
}

// timePosition is where a list that's ordered by time goes on: at the last item, of which
// others may share the time.
func timePosition(at time.Time, id uuid.UUID) string {
	return at.Format(time.RFC3339Nano) + " " + id.String()
}

// beforeTime reads such a position; zero values at the list's beginning.
func (p *cursor) beforeTime() (at time.Time, id uuid.UUID, err error) {
	if p.After == "" {
		return at, id, nil
	}
	text, last, _ := strings.Cut(p.After, " ")
	at, err = time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() {
		return at, id, badCursor()
	}
	if id, err = uuid.Parse(last); err != nil {
		return at, id, badCursor()
	}
	return at, id, nil
}
