package httpapi

import (
	"context"
	_ "embed" // the documents
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// probeTimeout bounds a readiness check: a dependency that's slower isn't ready.
const probeTimeout = 2 * time.Second

//go:embed openapi.yaml
var document []byte

//go:embed asyncapi.yaml
var eventsDocument []byte

// getDocument serves the description of this API.
func (a *api) getDocument(context.Context, *call) (answer, error) {
	return answer{status: http.StatusOK, kind: typeYAML, body: document}, nil
}

// getEventsDocument serves the description of what is published.
func (a *api) getEventsDocument(context.Context, *call) (answer, error) {
	return answer{status: http.StatusOK, kind: typeYAML, body: eventsDocument}, nil
}

// getHealth says that the process is alive, whatever else isn't.
func (a *api) getHealth(context.Context, *call) (answer, error) {
	return found(struct {
		Alive bool `json:"alive"`
	}{true})
}

func (a *api) getMetrics(context.Context, *call) (answer, error) {
	return answer{status: http.StatusOK, raw: a.Metrics.handler}, nil
}

func (a *api) getVersion(context.Context, *call) (answer, error) { return a.about, nil }

// about prepares the answer of /version.
func about(version string) answer {
	view := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Revision string `json:"revision"` // "" when the build doesn't say
	}{Version: version, Go: runtime.Version()}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" {
				view.Revision = s.Value
			}
		}
	}
	body, err := json.Marshal(view)
	if err != nil {
		panic(err) // strings
	}
	return answer{status: http.StatusOK, body: body}
}

// readiness is what one check found.
type readiness struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
}

// getReadiness runs the checks side by side. What was wrong goes to the log: the
// answer is for anybody.
func (a *api) getReadiness(ctx context.Context, c *call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	errs := make([]error, len(a.Ready))
	var probes sync.WaitGroup
	for i, check := range a.Ready {
		probes.Go(func() { errs[i] = check.Probe(ctx) })
	}
	probes.Wait()
	view := struct {
		Ready  bool        `json:"ready"`
		Checks []readiness `json:"checks"`
	}{true, make([]readiness, len(a.Ready))}
	for i, err := range errs {
		view.Checks[i] = readiness{a.Ready[i].Name, err == nil}
		if err != nil {
			view.Ready = view.Ready && a.Ready[i].Advisory
			a.Log.LogAttrs(ctx, slog.LevelWarn, "wasn't ready",
				append(c.attributes(), slog.String("check", a.Ready[i].Name), slog.Any("error", err))...)
		}
	}
	ans, err := found(view)
	if !view.Ready {
		ans.status = http.StatusServiceUnavailable
		ans.headers = http.Header{"Retry-After": {retryAfter(probeTimeout)}}
	}
	return ans, err
}
