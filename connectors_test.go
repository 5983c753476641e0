package terrarium_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
)

// flaky is a sink of a test: it fails several times before it keeps messages.
type flaky struct {
	fails atomic.Int64
	got   chan string
}

func (*flaky) Name() string { return "flaky" }

func (*flaky) Direction() connector.Direction { return connector.Sink }

func (*flaky) Settings() []capability.Setting {
	return []capability.Setting{{Name: "to", Type: capability.Text, Required: true, Doc: "a name"}}
}

func (k *flaky) Open(json.RawMessage) (connector.Connector, error) { return flakySink{k}, nil }

type flakySink struct{ *flaky }

func (flakySink) Reaches() string { return "the test" }

func (flakySink) Endless() bool { return true }

func (s flakySink) Run(ctx context.Context, p connector.Port) error {
	if s.fails.Add(-1) >= 0 {
		return errors.New("the endpoint is down")
	}
	p.Working()
	for {
		d, err := p.Next(ctx)
		if err != nil {
			return err
		}
		s.got <- d.ID + " " + string(d.Payload)
		p.Ack(d.Seq)
	}
}

const connectorsRecipe = `
channel "lines" {}
channel "out" {}
creature "echo" {
  module = "builtin:relay"
  listen = [channel.lines]
  send   = [channel.out]
}
`

func applyText(t *testing.T, x *terrarium.Terrarium, dir, text string) {
	t.Helper()
	path := filepath.Join(dir, "r.hcl")
	if err := os.WriteFile(path, []byte(connectorsRecipe+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Apply(t.Context(), path, terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestConnectors runs a file through a creature into a sink that is down at first, restarts
// it, and removes sources and sinks with the recipe.
func TestConnectors(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := `
source "file" "in" {
  channel = channel.lines
  path    = "in"
  follow  = false
}
sink "file" "out" {
  channel = channel.out
  path    = "out"
}
sink "flaky" "test" {
  channel = channel.out
  to      = "test"
}
`
	kind := &flaky{got: make(chan string, 10)}
	kind.fails.Store(1)
	options := terrarium.Options{Dir: filepath.Join(dir, "s"), Connectors: []connector.Kind{kind}}
	x, err := terrarium.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	applyText(t, x, dir, blocks)
	first := <-kind.got
	settled := func(x *terrarium.Terrarium) {
		t.Helper()
		for _, wait := range []func(context.Context) error{x.Connectors().WaitSources, x.WaitIdle, x.Connectors().WaitSinks} {
			if err := wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled(x)
	if second := <-kind.got; !strings.HasSuffix(first, " one") || !strings.HasSuffix(second, " two") {
		t.Errorf("the sink gets %q and %q", first, second)
	}
	lines, err := os.ReadFile(out)
	if err != nil || strings.Count(string(lines), "\n") != 2 || !strings.Contains(string(lines), `"id":"`+strings.Fields(first)[0]+`"`) {
		t.Errorf("%v; the file has\n%s", err, lines)
	}
	status := map[string]connector.Status{}
	for _, c := range x.Connectors().Status() {
		status[c.Name] = c
	}
	if s := status["in"]; s.State != connector.Ended || s.Messages != 2 || s.Channel != "channel.lines" {
		t.Errorf("the source is %+v", s)
	}
	if s := status["test"]; s.State != connector.Working || s.Failures != 1 || s.Messages != 2 || s.Error != "" {
		t.Errorf("the sink is %+v", s)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(in, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if x, err = terrarium.New(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer x.Close(t.Context())
	applyText(t, x, dir, blocks)
	settled(x)
	if third := <-kind.got; !strings.HasSuffix(third, " three") {
		t.Errorf("after a restart, the sink gets %q", third)
	}
	if lines, err = os.ReadFile(out); err != nil || strings.Count(string(lines), "\n") != 3 {
		t.Errorf("%v; after a restart, the file has\n%s", err, lines)
	}
	applyText(t, x, dir, `sink "flaky" "test" {
  channel = channel.out
  to      = "test"
}
`)
	if list := x.Connectors().Status(); len(list) != 1 || list[0].Name != "test" {
		t.Errorf("the recipe without them leaves %+v", list)
	}
}

// TestCronOnManualClock moves the time over several ticks.
func TestCronOnManualClock(t *testing.T) {
	clock := terrarium.NewManualClock(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
	x, err := terrarium.New(t.Context(), terrarium.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(t.Context())
	dir := t.TempDir()
	applyText(t, x, dir, `
source "cron" "ticks" {
  channel  = channel.lines
  schedule = "*/20 * * * *"
}
`)
	channel, err := x.FindChannel("", "out")
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Read(channel, "test", terrarium.ReaderOptions{FromStart: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := x.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"10:20", "10:40", "11:00"} {
		if r.Pending() == 0 {
			t.Fatalf("there is no tick at %s", want)
		}
		in, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(in.Payload); got != `{"scheduled":"2026-03-02T`+want+`:00Z"}` {
			t.Errorf("a tick has the payload %s, want %s", got, want)
		}
	}
}

// TestDeclaredWebhook applies a recipe with a webhook in a program that runs no sources: a
// sender is not told that the path is wrong.
func TestDeclaredWebhook(t *testing.T) {
	x, err := terrarium.New(t.Context(), terrarium.Options{Scratch: true, NoConnectors: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	status := func() int {
		w := httptest.NewRecorder()
		x.Connectors().Webhooks().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/hooks/it", nil))
		return w.Code
	}
	if got := status(); got != http.StatusNotFound {
		t.Errorf("before the recipe, the status is %d", got)
	}
	dir := t.TempDir()
	applyText(t, x, dir, `
variable "secret" {
  sensitive = true
  default   = "0123456789abcdef-secret"
}
source "webhook" "it" {
  channel = channel.lines
  path    = "/hooks/it"
  secret  = var.secret
}
`)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("with the recipe, the status is %d", got)
	}
	applyText(t, x, dir, "")
	if got := status(); got != http.StatusNotFound {
		t.Errorf("after the recipe, the status is %d", got)
	}
}
