package plugins_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/samehost"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/plugins/native"
)

// limits allow a slow test machine more time than a turn has by default.
var limits = abi.Limits{Deadline: time.Minute}

// engine makes a host with one of the engines.
func engine(t testing.TB, name string) abi.Host {
	t.Helper()
	o, ok := map[string]host.Options{
		"translation": {Translations: native.All()}, "compiler": {}, "interpreter": {Interpreter: true},
	}[name]
	if !ok {
		t.Fatalf("there is no engine %q", name)
	}
	if _, ok := t.(*testing.T); ok && !o.Interpreter { // a benchmark compiles
		o.CacheDir, o.CacheKey = filepath.Join(codeDir, "compiled"), filepath.Join(codeDir, "key")
	}
	h, err := host.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// allEngines returns a host that runs every guest in all engines, and fails the test if they
// differ.
func allEngines(t testing.TB) *samehost.Host {
	all := &samehost.Host{Report: func(difference string) { t.Errorf("%.2000s", difference) }}
	for _, name := range []string{"translation", "compiler", "interpreter"} {
		all.Engines = append(all.Engines, samehost.Engine{Name: name, Host: engine(t, name)})
	}
	return all
}

// compile makes a module run as it does in cmd/terrarium. TERRARIUM_ENGINE names another
// engine, or all.
func compile(t testing.TB, module []byte) abi.Module {
	t.Helper()
	name := cmp.Or(os.Getenv("TERRARIUM_ENGINE"), "translation")
	if name == "all" {
		return compileIn(t, allEngines(t), module)
	}
	return compileIn(t, engine(t, name), module)
}

func compileIn(t testing.TB, h abi.Host, module []byte) abi.Module {
	t.Helper()
	ctx := context.Background()
	m, err := h.Compile(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

func builtin(t testing.TB, name string) abi.Module {
	t.Helper()
	module, err := plugins.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, module)
}

// A record is the result of one delivery.
type record struct {
	effects []effect
	logs    []string
	err     error
	memory  int64
}

// play hands the deliveries to a creature, one instance for all of them, or a
// fresh one for each. It returns the result of each.
func play(t testing.TB, m abi.Module, w *world, fresh bool, deliveries []delivery) []record {
	t.Helper()
	ctx := context.Background()
	var i abi.Instance
	closeInstance := func() {
		if i == nil {
			return
		}
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
		i = nil
	}
	defer closeInstance()
	var records []record
	for _, d := range deliveries {
		if i == nil {
			w.handles = nil
			var err error
			if i, err = m.Instantiate(ctx, &limits, w.turn(delivery{}, true)); err != nil {
				t.Fatal(err)
			}
		}
		if d.kind == 0 {
			d.kind = abi.KindMessage
		}
		if d.channel == "" {
			d.channel = "in"
		}
		turn := w.turn(d, false)
		err := i.Handle(ctx, turn, d.kind, len(d.payload))
		records = append(records, record{turn.effects, turn.logs, err, i.MemoryBytes()})
		if err == nil {
			w.state = turn.state
		} else {
			records[len(records)-1].effects = nil
		}
		if fresh || err != nil {
			closeInstance()
		}
	}
	return records
}

// run plays the deliveries warm and with a fresh instance for every turn, fails
// if the two differ, and returns all effects. No turn may fail.
func run(t testing.TB, m abi.Module, w *world, deliveries ...delivery) []effect {
	t.Helper()
	again := *w
	again.state = maps.Clone(w.state)
	warm := play(t, m, w, false, deliveries)
	cold := play(t, m, &again, true, deliveries)
	var all []effect
	for n, r := range warm {
		if r.err != nil {
			t.Fatalf("delivery %d: %v", n, r.err)
		}
		if !slices.Equal(r.effects, cold[n].effects) || !slices.Equal(r.logs, cold[n].logs) {
			t.Fatalf("delivery %d: warm and fresh instances differ:\n%.200q\n%.200q", n, r.effects, cold[n].effects)
		}
		all = append(all, r.effects...)
	}
	if !maps.Equal(w.state, again.state) {
		t.Fatalf("warm and fresh instances leave different state:\n%v\n%v", w.state, again.state)
	}
	return all
}

// refuses instantiates a creature with a wrong configuration and checks the
// error.
func refuses(t testing.TB, m abi.Module, config map[string]any, want string) {
	t.Helper()
	w := &world{config: config}
	turn := w.turn(delivery{}, true)
	i, err := m.Instantiate(context.Background(), &limits, turn)
	if err == nil {
		_ = i.Close(context.Background())
		t.Fatalf("the configuration %v is accepted", config)
	}
	if abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("%v: the code of %v is not invalid_argument", config, err)
	}
	if logs := strings.Join(turn.logs, "\n"); !strings.Contains(logs, want) {
		t.Errorf("%v: the log does not say %q:\n%s", config, want, logs)
	}
}

func equal(t testing.TB, got []effect, want ...effect) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", show(got), show(want))
	}
}

func show(effects []effect) string {
	var b strings.Builder
	for _, e := range effects {
		fmt.Fprintf(&b, "  %.300s\n", e)
	}
	return b.String()
}

// sent is a message as it appears among the effects.
func sent(alias, payload, headers string) effect {
	return fmt.Sprintf("send %s %q %q", alias, payload, headers)
}

func messages(payloads ...string) []delivery {
	var all []delivery
	for _, p := range payloads {
		all = append(all, delivery{payload: p})
	}
	return all
}

// awkward are payloads that must pass through unharmed.
var awkward = []string{
	"plain",
	"",
	"\xff\xfe not UTF-8 \xc3",
	"NUL \x00 inside",
	"\n",
	strings.Repeat("x", 1<<20),
	"after the large one",
}
