package httpapi_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	browserTimeout = 5 * time.Minute // of a whole test with a browser
	sightTimeout   = time.Minute     // until a page looks as it should: machines may be busy
)

// browsers are the names and places of programs that are Chromium.
var browsers = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}

// browser is Chromium without a window, with one page. It ends with the test.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// browse starts a browser, after the servers of its pages: it must end before they do.
// The test fails if a script of a page throws, or if a page does what its
// Content-Security-Policy forbids.
func browse(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a browser")
	}
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) }) // its crash reporter may live a moment longer
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.Env("XDG_CONFIG_HOME="+home),
		chromedp.WSURLReadTimeout(sightTimeout))
	ctx, cancel := context.WithTimeout(context.Background(), browserTimeout)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop) // and waits for the process
	// Errors of the protocol come when they like, also after the test.
	quiet := chromedp.WithErrorf(func(string, ...any) {})
	ctx, closeTab := chromedp.NewContext(ctx, quiet)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx}
	faults := make(chan string, 100) // more are the same again
	t.Cleanup(func() {
		for len(faults) > 0 {
			t.Errorf("the page: %s", <-faults)
		}
	})
	err = chromedp.Listen(ctx, func(event any) {
		fault := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			fault = (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
		case *log.EventEntryAdded:
			if e.Entry.Source != log.EntrySourceNetwork { // that's what the test does
				fault = e.Entry.Text
			}
		}
		if fault != "" {
			select {
			case faults <- fault:
			default:
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chromium finds the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there's no Chromium on this machine: run scripts/setup tests")
	return ""
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page shows:\n%s", err, b.text())
	}
}

// open loads a page. What its script asks for may come later.
func (b *browser) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
}

// press sends keys to what has the focus.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// is fails the test unless an expression becomes true soon.
func (b *browser) is(expression string) {
	b.t.Helper()
	const look = `new Promise((resolve) => {
		const end = performance.now() + %d;
		const look = () => ((%s) ? resolve(true) : performance.now() > end ? resolve(false) : setTimeout(look, 10));
		look();
	})`
	seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf(look, sightTimeout.Milliseconds(), expression), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	if !seen {
		b.t.Fatalf("%s isn't true; the page shows:\n%s", expression, b.text())
	}
}

// shows fails the test unless an element's text has a part soon.
func (b *browser) shows(selector, part string) {
	b.t.Helper()
	b.is(fmt.Sprintf("(document.querySelector(%q)?.textContent || '').includes(%q)", selector, part))
}

// seats fails the test unless seats have states soon: label, state, in turn.
func (b *browser) seats(states ...string) {
	b.t.Helper()
	var all []string
	for i := 0; i < len(states); i += 2 {
		all = append(all, fmt.Sprintf(`document.querySelector('[data-seat="%s"]')?.dataset.state === %q`, states[i], states[i+1]))
	}
	b.is(strings.Join(all, " && "))
}

// text is what the page shows, for the log.
func (b *browser) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}
