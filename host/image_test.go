package host

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// imagingHost makes an image of every module that allows one.
func imagingHost(t testing.TB, opts Options) *Host {
	h := newHost(t, opts)
	h.imageFrom = 0
	return h
}

// imageOf returns the image of a module, or nil.
func imageOf(m abi.Module) *startImage {
	s := &m.(*Module).compiled.images
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.image
}

// without runs f while a module has no image and none can be made.
func without(m abi.Module, f func()) {
	s := &m.(*Module).compiled.images
	image, never := s.image, s.never
	s.image, s.never = nil, true
	defer func() { s.image, s.never = image, never }()
	f()
}

// byDefault makes an instance without a configuration.
func byDefault(t *testing.T, m abi.Module, limits *abi.Limits) *Instance {
	t.Helper()
	i, err := m.Instantiate(t.Context(), limits, &fakeTurn{defaults: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close(t.Context()) })
	return i.(*Instance)
}

type delivery struct {
	kind    abi.Kind
	size    int
	payload string
}

// messages are deliveries of one message each.
func messages(payloads ...string) []delivery {
	var all []delivery
	for _, p := range payloads {
		all = append(all, delivery{abi.KindMessage, len(p), p})
	}
	return all
}

// kinds makes one delivery of each given kind, with a payload of this size.
func kinds(size int, kinds ...abi.Kind) []delivery {
	var all []delivery
	for _, k := range kinds {
		all = append(all, delivery{kind: k, size: size})
	}
	return all
}

// observed returns everything observable about an instance after a call, except its
// memory.
type observed struct {
	Calls, Logs []string
	Error       string
	Fuel, Bytes int64
	Monotonic   int64
}

func observe(i *Instance, turn *fakeTurn, err error) observed {
	o := observeFailure(turn, err)
	o.Fuel, o.Bytes, o.Monotonic = i.FuelUsed(), i.MemoryBytes(), i.call.wasi.monotonic
	return o
}

func observeFailure(turn *fakeTurn, err error) observed {
	return observed{Calls: turn.calls, Logs: turn.logs, Error: fmt.Sprint(err)}
}

// compareTwins makes an instance with the image of a module and one without
// it, gives both the same deliveries and reports the differences.
func compareTwins(t *testing.T, m abi.Module, limits *abi.Limits, deliveries []delivery) {
	t.Helper()
	var plain, imaged *Instance
	turns := [2]fakeTurn{{defaults: true}, {defaults: true}}
	var errs [2]error
	make := func(n int) *Instance {
		var i abi.Instance
		if i, errs[n] = m.Instantiate(t.Context(), limits, &turns[n]); errs[n] != nil {
			return nil
		}
		return i.(*Instance)
	}
	without(m, func() { plain = make(0) })
	imaged = make(1)
	if plain == nil || imaged == nil {
		if diff := cmp.Diff(observeFailure(&turns[0], errs[0]), observeFailure(&turns[1], errs[1])); diff != "" {
			t.Fatalf("without and with an image it ends differently:\n%s", diff)
		}
		return
	}
	defer plain.Close(t.Context())
	defer imaged.Close(t.Context())
	compare := func(what string, turns *[2]fakeTurn, errs [2]error) {
		t.Helper()
		if diff := cmp.Diff(observe(plain, &turns[0], errs[0]), observe(imaged, &turns[1], errs[1])); diff != "" {
			t.Fatalf("%s: without and with an image differ:\n%s", what, diff)
		}
		if !bytes.Equal(plain.call.memory.Bytes, imaged.call.memory.Bytes) {
			t.Fatalf("%s: the memory differs", what)
		}
	}
	compare("made", &turns, [2]error{})
	for n, d := range deliveries {
		var errs [2]error
		for k, i := range [2]*Instance{plain, imaged} {
			turns[k] = fakeTurn{defaults: true, payload: []byte(d.payload), now: time.Date(2024, 2, 29, 12, 0, n, 5, time.UTC).UnixNano()}
			errs[k] = i.Handle(t.Context(), &turns[k], d.kind, d.size)
		}
		compare(fmt.Sprintf("delivery %d, %v %q", n, d.kind, d.payload), &turns, errs)
	}
}

// twins lists guests with their deliveries. Each list of deliveries is for one pair of
// instances.
func twins(t *testing.T) map[string]struct {
	wasm       []byte
	deliveries [][]delivery
} {
	behave := [][]delivery{kinds(3, 1, 6, 6, 6, 12, 12, 19, 16, 13, 2)}
	for _, k := range []abi.Kind{3, 4, 5, 7, 8, 9, 10, 11, 14, 15, 17} {
		behave = append(behave, kinds(1000, 1, k, 1))
	}
	return map[string]struct {
		wasm       []byte
		deliveries [][]delivery
	}{
		"behave": {readModule(t, "behave"), behave},
		"echo":   {readModule(t, "echo"), [][]delivery{messages("a", "", "bc")}},
		"relay":  {readFile(t, "../plugins/relay/relay.wasm"), [][]delivery{messages("a", "b")}},
		"tally":  {readFile(t, "../plugins/tally/tally.wasm"), [][]delivery{messages("a", "b", "a")}},
		"busy":   {busyGuest(t), [][]delivery{kinds(0, 1, 1, 1)}},
	}
}

func TestImagesChangeNothing(t *testing.T) {
	limits := &abi.Limits{Deadline: time.Minute, Calls: 100, Memory: 8 * abi.PageBytes, Fuel: 1_000_000, Stack: 64 << 10}
	for _, engine := range []Options{{}, {Interpreter: true}} {
		h := imagingHost(t, engine)
		for name, guest := range twins(t) {
			t.Run(fmt.Sprintf("%s/interpreter %v", name, engine.Interpreter), func(t *testing.T) {
				m := compile(t, h, guest.wasm)
				first := byDefault(t, m, limits)
				if imageOf(m) == nil {
					t.Fatal("there is no image")
				}
				if first.call.memory.Image == nil && first.call.memory.Region.Mapped() {
					t.Error("the first instance has pages of its own")
				}
				for _, d := range guest.deliveries {
					compareTwins(t, m, limits, d)
				}
			})
		}
	}
}

// Guests in standard Go profit most from an image and need no lowered
// threshold; TestGoGuest covers the other one.
func TestImagesOfGo(t *testing.T) {
	m := compile(t, newHost(t, Options{}), buildGo(t, "../plugins/digest"))
	compareGo(t, m, messages("error: one", "error: two", "all is well"))
}

func compareGo(t *testing.T, m abi.Module, lists ...[]delivery) {
	t.Helper()
	limits := &abi.Limits{Deadline: time.Minute, Fuel: 1 << 40}
	byDefault(t, m, limits)
	if imageOf(m) == nil {
		t.Fatal("there is no image")
	}
	for _, d := range lists {
		compareTwins(t, m, limits, d)
	}
	concurrently(t, m)
}

// concurrently makes, uses and closes instances on several goroutines.
func concurrently(t *testing.T, m abi.Module) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				i, err := m.Instantiate(t.Context(), nil, &fakeTurn{defaults: true})
				if err != nil {
					t.Error(err)
					return
				}
				if err := i.Handle(t.Context(), &fakeTurn{defaults: true, payload: []byte("hello")}, abi.KindMessage, 5); err != nil {
					t.Error(err)
				}
				i.Close(t.Context())
			}
		})
	}
	wg.Wait()
}

// A guest that does these things in _initialize still gets an image.
func TestWhatCanBeAnImage(t *testing.T) {
	h := imagingHost(t, Options{})
	for _, c := range []struct {
		name  string
		guest string
		write func(b *builder)
		image bool
	}{
		{"nothing", "script", func(*builder) {}, true},
		{"draws random bytes", "script", func(b *builder) { b.call("random", 8, 8) }, true},
		{"asks for the time", "script", func(b *builder) { b.call("now") }, true},
		{"grows", "script", func(b *builder) { b.i32(1); b.op(wasmbin.OpMemoryGrow, 0); b.op(wasmbin.OpDrop) }, true},
		{"is refused memory", "script", func(b *builder) { b.i32(900); b.op(wasmbin.OpMemoryGrow, 0); b.op(wasmbin.OpDrop) }, false},
		{"is refused a call", "script", func(b *builder) { b.call("random", -1, 8) }, false},
		{"reads its configuration", "script", func(b *builder) { b.call("config", 0, 1, 0, 0) }, false},
		{"asks for fuel", "script", func(b *builder) { b.call("fuel_left") }, false},
		{"asks for a feature", "script", func(b *builder) { b.call("feature", 0) }, false},
		{"looks up a channel", "script", func(b *builder) { b.call("channel", 0, 1) }, false},
		{"reads a source", "script", func(b *builder) { b.call("size", 0) }, false},
		{"logs", "script", func(b *builder) { b.call("log", 0, 0, 1) }, false},
		{"tries an effect", "script", func(b *builder) { b.call("output", 0, 1) }, false},
		{"calls WASI", "script_wasi", func(b *builder) { b.call("random_get", 0, 8); b.call("sched_yield") }, true},
		{"prints", "script_wasi", func(b *builder) { b.call("fd_write", 1, 0, 0, 8) }, false},
		{"has a global that is a number", "echo", func(b *builder) { b.number() }, true},
		{"has a global that is a vector", "echo", func(b *builder) {
			b.global(wasmbin.V128, wasmbin.ConstExpr{Op: wasmbin.OpV128Const})
		}, false},
		{"has a global that is a reference", "echo", func(b *builder) {
			b.global(wasmbin.FuncRef, wasmbin.ConstExpr{Op: wasmbin.OpRefNull, Type: wasmbin.FuncRef})
		}, false},
		{"could grow its table", "behave", func(*builder) {}, false},
		{"could drop data", "echo", func(b *builder) {
			b.data(wasmbin.Data{Mode: wasmbin.Passive})
			b.op(wasmbin.OpDataDrop, 0)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := compile(t, h, withInitializer(t, c.guest, c.write))
			limits := &abi.Limits{Memory: 100 * abi.PageBytes}
			instantiate(t, m, limits)
			if got := imageOf(m) != nil; got != c.image {
				t.Errorf("the module has an image: %v, want %v", got, c.image)
			}
			compareTwins(t, m, limits, nil)
		})
	}
}

// An instance that would reach a limit without an image also reaches it with one.
func TestImagesRespectLimits(t *testing.T) {
	h := imagingHost(t, Options{})
	m := compile(t, h, withInitializer(t, "script", func(b *builder) {
		for range 10 {
			b.call("random", 0, 1000)
		}
		b.i32(2)
		b.op(wasmbin.OpMemoryGrow, 0)
		b.op(wasmbin.OpDrop)
	}))
	generous := &abi.Limits{Fuel: 1 << 40, Calls: 100, Stack: 1 << 20, Memory: 100 * abi.PageBytes}
	instantiate(t, m, generous)
	image := imageOf(m)
	if image == nil {
		t.Fatal("there is no image")
	}
	for _, c := range []struct {
		what   string
		change func(l *abi.Limits)
		code   abi.Code
		used   bool
	}{
		{"the same", func(*abi.Limits) {}, abi.OK, true},
		{"less fuel", func(l *abi.Limits) { l.Fuel = 5000 }, abi.OutOfFuel, false},
		{"fewer calls", func(l *abi.Limits) { l.Calls = 9 }, abi.OK, false},
		{"far fewer calls", func(l *abi.Limits) { l.Calls = 4 }, abi.LimitExceeded, false},
		{"as many calls", func(l *abi.Limits) { l.Calls = 11 }, abi.OK, true},
		{"less stack", func(l *abi.Limits) { l.Stack = 1 << 19 }, abi.OK, false},
		{"more stack", func(l *abi.Limits) { l.Stack = 1 << 21 }, abi.OK, true},
		{"less memory", func(l *abi.Limits) { l.Memory = 3 * abi.PageBytes }, abi.OK, false},
		{"as much memory", func(l *abi.Limits) { l.Memory = 4 * abi.PageBytes }, abi.OK, true},
	} {
		limits := *generous
		c.change(&limits)
		// The script in creature_init reads an empty payload and logs once.
		i, err := m.Instantiate(t.Context(), &limits, &fakeTurn{})
		if abi.CodeOf(err) != c.code {
			t.Errorf("%s: the error is %v, want code %v", c.what, err, c.code)
		}
		if err != nil {
			continue
		}
		if used := i.(*Instance).call.memory.Image != nil; used != c.used {
			t.Errorf("%s: the image is used: %v, want %v", c.what, used, c.used)
		}
		i.Close(t.Context())
	}
	for around := image.fuel - 20; around < image.fuel+1000; around += 10 {
		compareTwinErrors(t, m, &abi.Limits{Fuel: around})
	}
}

// compareTwinErrors instantiates twice and compares how it ends.
func compareTwinErrors(t *testing.T, m abi.Module, limits *abi.Limits) {
	t.Helper()
	attempt := func() string {
		i, err := m.Instantiate(t.Context(), limits, &fakeTurn{})
		if err != nil {
			return err.Error()
		}
		defer i.Close(t.Context())
		return fmt.Sprintf("used %d", i.FuelUsed())
	}
	var plain string
	without(m, func() { plain = attempt() })
	if got := attempt(); got != plain {
		t.Errorf("with fuel %d: %s, without an image %s", limits.Fuel, got, plain)
	}
}

// ABI-P9: until creature_init the clock stands still, and random bytes depend
// only on the module, not on the creature.
func TestNothingIsPersonalBeforeInit(t *testing.T) {
	initializer := func(extra int64) []byte {
		return withInitializer(t, "script_wasi", func(b *builder) {
			b.call("random_get", 1024, 32)
			b.call("random_get", 1056, extra)
			for id := range int64(2) {
				b.i32(id)
				b.code = wasmbin.AppendS64(wasmbin.OpI64Const.Append(b.code), 0)
				b.call("clock_time_get", 1104+8*id)
			}
		})
	}
	h := newHost(t, Options{})
	memory := func(m abi.Module, now int64) []byte {
		turn := &fakeTurn{now: now}
		i, err := m.Instantiate(t.Context(), nil, turn)
		if err != nil {
			t.Fatal(err)
		}
		defer i.Close(t.Context())
		if slices.ContainsFunc(turn.calls, func(s string) bool { return strings.HasPrefix(s, "random") }) {
			t.Errorf("the turn was asked: %q", turn.calls)
		}
		return bytes.Clone(i.(*Instance).call.memory.Bytes[1024:1120])
	}
	m, other := compile(t, h, initializer(1)), compile(t, h, initializer(2))
	first, second, third := memory(m, 1), memory(m, 2_000), memory(other, 1)
	if !bytes.Equal(first, second) {
		t.Errorf("two instances have\n%x and\n%x", first, second)
	}
	if bytes.Equal(first[:32], third[:32]) || bytes.Equal(first[:32], make([]byte, 32)) {
		t.Errorf("two modules draw %x and %x", first[:32], third[:32])
	}
	if want := append(make([]byte, 8), 1, 0, 0, 0, 0, 0, 0, 0); !bytes.Equal(first[80:], want) {
		t.Errorf("the clocks have %x, want %x", first[80:], want)
	}
}
