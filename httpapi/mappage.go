package httpapi

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// pageFiles are the sources of the page of the seat map.
//
//go:embed page
var pageFiles embed.FS

// mapScripts are the parts of the page's script, in their order.
var mapScripts = []string{"seatmap.js", "drawing.js", "feed.js", "map.js"}

// mapPage serves the page of an event's seat map: one document that needs nothing
// from elsewhere. It's the same for every event, also for one that doesn't exist: what
// is of the event its script asks for, with the user's key.
func (a *api) mapPage(_ context.Context, c *call) (answer, error) {
	page := seatMapPage()
	for _, line := range c.request.Header["If-None-Match"] {
		if line == "*" || strings.Contains(line, page.headers["Etag"][0]) {
			return answer{status: http.StatusNotModified, headers: page.headers}, nil
		}
	}
	return page, nil
}

// seatMapPage makes the page. The browser runs and applies only what is named by
// its hash in the policy: whatever a name or a label has in it, it stays text.
var seatMapPage = sync.OnceValue(func() answer {
	var script strings.Builder
	script.WriteString("(() => {\n'use strict';\n")
	for _, name := range mapScripts {
		script.Write(pageFile(name))
	}
	script.WriteString("})();\n")
	style := string(pageFile("map.css"))
	body := []byte(strings.NewReplacer("{{style}}", style, "{{script}}", script.String()).Replace(string(pageFile("map.html"))))
	return answer{status: http.StatusOK, kind: []string{"text/html; charset=utf-8"}, body: body, headers: http.Header{
		"Content-Security-Policy": {"default-src 'none'; connect-src 'self'; img-src data:; script-src " + hashSource(script.String()) +
			"; style-src " + hashSource(style) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		"Cache-Control":          {"no-cache"}, // kept, and asked for each time: a release is seen at once
		"Etag":                   {`"` + digest(string(body)) + `"`},
		"Referrer-Policy":        {"no-referrer"},
		"X-Content-Type-Options": {"nosniff"},
	}}
})

func pageFile(name string) []byte {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it's part of the program
	}
	return text
}

// hashSource names an inline script or style in a Content-Security-Policy.
func hashSource(text string) string { return "'sha256-" + digest(text) + "'" }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
