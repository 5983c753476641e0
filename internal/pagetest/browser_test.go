package pagetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds what a test waits for the browser.
const patience = 2 * time.Minute

var (
	browser    context.Context
	noBrowser  string
	browserEnd func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	if browserEnd != nil {
		browserEnd()
	}
	os.Exit(code)
}

var launch = sync.OnceFunc(func() {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		noBrowser = "there is no chromium on the PATH"
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.WindowSize(1440, 900))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Run(ctx); err != nil {
		noBrowser = "chromium does not start: " + err.Error()
	}
	browser, browserEnd = ctx, func() {
		endBrowser()
		endAllocator()
	}
})

// A tab is a page in the browser, with all the errors that it reported.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
	calm     bool // lost connections are part of the test
}

type look struct {
	width, height int
	dark, still   bool
}

var desk = look{width: 1440, height: 900}

func open(t *testing.T, address string, l look) *tab {
	t.Helper()
	if os.Getenv("TERRARIUM_BROWSER") == "" {
		t.Skip("make test-page runs this test")
	}
	if launch(); noBrowser != "" {
		t.Fatal(noBrowser)
	}
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.hear)
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	b.run(log.Enable(), runtime.Enable(),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}),
		emulation.SetDeviceMetricsOverride(int64(l.width), int64(l.height), 1, l.width < 700),
		chromedp.Navigate(address))
	t.Cleanup(b.check)
	return b
}

func (b *tab) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text = fmt.Sprint(e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			if e.Entry.Source == log.SourceNetwork && b.calmed() {
				return
			}
			text = string(e.Entry.Source) + ": " + e.Entry.Text + " " + e.Entry.URL
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, text)
	}
}

func (b *tab) calmed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calm
}

// expectLoss says that from now on requests may fail.
func (b *tab) expectLoss() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// check fails the test if the browser reported an error.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("the browser reported: %s", p)
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The first run of a tab must not have a context that ends: it would end the tab.
	if chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval evaluates an expression, which may be a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	var result T
	b.run(chromedp.Evaluate(expression, &result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return result
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(30*time.Millisecond))); err != nil {
		b.run(chromedp.ActionFunc(func(context.Context) error { return nil }))
		b.t.Fatalf("it never became true: %s: %v\n%s", expression, err, eval[string](b, "document.body.innerText.slice(0, 2000)"))
	}
}

// press presses keys as a keyboard does: the browser makes the character of a key itself, unless
// the page has handled the key. (chromedp.KeyEvent sends the character in any case, and it may
// reach an element that has the focus since.)
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		for _, r := range k {
			events := kb.Encode(r)
			down, up := events[0], events[len(events)-1]
			if len(events) == 3 {
				down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			}
			b.run(down, up)
		}
	}
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(selector, chromedp.ByQuery))
}

// clickText presses the first button or link with this text.
func (b *tab) clickText(text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('main button, main a')].find(x => x.offsetParent && x.textContent.trim().startsWith(%q))", text)
	b.until("!!" + find)
	eval[any](b, find+".click()")
}

// shot writes a picture of the page if TERRARIUM_SHOTS is set.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("TERRARIUM_SHOTS")
	if dir == "" {
		return
	}
	var data []byte
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		data, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o666); err != nil {
		b.t.Fatal(err)
	}
	if !strings.HasPrefix(name, "page-") {
		return
	}
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) { // smaller, for the documentation
		data, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(82).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), data, 0o666); err != nil {
		b.t.Fatal(err)
	}
}

// holds fails the test unless the text has all of the parts.
func (b *tab) holds(selector string, parts ...string) {
	b.t.Helper()
	text := b.text(selector)
	for _, p := range parts {
		if !strings.Contains(text, p) {
			b.t.Errorf("%s does not contain %q: %s", selector, p, text)
		}
	}
}
