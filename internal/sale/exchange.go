package sale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// exchangeTimeout bounds a call whose body or answer is large.
	exchangeTimeout = time.Minute
	// maxExchange bounds an answer; a report of a million rows takes less.
	maxExchange = 256 << 20
	// pageSize is the most that a list of the API has on a page.
	pageSize = "500"
)

// List reads all pages of a list, such as /v1/orders, below a service's URL.
func List[T any](ctx context.Context, base, path string, filters url.Values) (all []T, err error) {
	filters.Set("limit", pageSize)
	query := filters.Encode()
	for query != "" {
		text, err := exchange(ctx, http.MethodGet, base+path+"?"+query, "", nil)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		all, query = append(all, page.Data...), ""
		if page.Next != nil {
			query = url.Values{"cursor": {*page.Next}}.Encode()
		}
	}
	return all, nil
}

// exchange is a call whose body or answer is too large for the clients that make the
// load. A body is CSV.
func exchange(ctx context.Context, method, url, key string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Content-Type", "text/csv")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxExchange))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	return text, err
}
