package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/testdata/natives"
	"github.com/seed47132306/terrarium/host/translation"
)

func TestOutcomes(t *testing.T) {
	none := []translation.Code{} // also where newHost adds some
	for _, engine := range []struct {
		name string
		opts Options
	}{{"compiler", Options{Translations: none}}, {"interpreter", Options{Interpreter: true, Translations: none}}, {"translation", Options{Translations: natives.All()}}} {
		t.Run(engine.name, func(t *testing.T) {
			h := newHost(t, engine.opts)
			m := compile(t, h, readModule(t, "behave"))
			if got := m.(*Module).compiled.translated != nil; got != (engine.name == "translation") {
				t.Fatalf("the module runs as its translation: %v", got)
			}
			testOutcomes(t, m)
		})
	}
}

func testOutcomes(t *testing.T, m abi.Module) {
	limits := &abi.Limits{Deadline: time.Minute, Calls: 100, Memory: 4 * abi.PageBytes, Fuel: 1_000_000, Stack: 64 << 10}
	// Only the guest that never ends has a short deadline; making an instance
	// and everything else must not reach it, even on a slow machine.
	short := &abi.Limits{Deadline: 500 * time.Millisecond, Calls: 100, Memory: 4 * abi.PageBytes, Fuel: 1 << 60}
	const outOfFuel = "creature_handle: the guest used up the limit fuel, 1000000 units (in "
	for _, c := range []struct {
		what   string
		kind   abi.Kind
		size   int
		limits *abi.Limits
		code   abi.Code
		text   string
	}{
		{"answers well", 1, 0, limits, abi.OK, ""},
		{"traps", 2, 0, limits, abi.Trapped, "creature_handle: the guest trapped: unreachable (in innermost < inner < creature_handle)"},
		{"loops", 3, 0, short, abi.Deadline, "creature_handle: the guest ran longer than the limit deadline, 500ms (in spin < creature_handle); raise the limit deadline, or do less in one turn"},
		{"loops beyond its fuel", 3, 0, limits, abi.OutOfFuel, outOfFuel + "spin < creature_handle); raise the limit fuel, or do less in one turn"},
		{"calls twice for each call", 16, 60, limits, abi.OutOfFuel, outOfFuel + "tree < tree < "},
		{"fills memory again and again", 17, 60000, limits, abi.OutOfFuel, outOfFuel + "creature_handle); "},
		{"copies memory again and again", 18, 60000, limits, abi.OutOfFuel, outOfFuel + "creature_handle); "},
		{"reads fuel_left", 19, 0, limits, abi.OK, ""},
		{"fails with words", 4, 0, limits, abi.Storage, "creature_handle: the guest returned -16 (storage): out of cheese"},
		{"calls forever", 5, 0, limits, abi.LimitExceeded, "creature_handle: the guest made 200 hostcalls; the limit calls is 100 (in terrarium_v1.now < call_for_ever < creature_handle); raise the limit calls, or do less in one turn"},
		{"grows to its limit", 6, 3, limits, abi.OK, ""},
		{"recurses", 7, 0, limits, abi.LimitExceeded, "creature_handle: the guest's calls nest beyond the limit stack, 65536 bytes (in recurse < recurse < recurse < recurse < recurse < recurse < recurse < recurse < …); raise the limit stack, or recurse less deeply"},
		{"exits", 8, 0, limits, abi.Trapped, "creature_handle: the guest exited with status 3; return from creature_handle instead of exiting"},
		{"aborts", 9, 0, limits, abi.Trapped, "creature_handle: the guest aborted: nope (a.ts:12:5)"},
		{"reads out of bounds", 10, 0, limits, abi.Trapped, "creature_handle: the guest trapped: out of bounds memory access (in creature_handle)"},
		{"fails after a hostcall", 11, 0, limits, abi.InvalidArgument, "creature_handle: the guest returned -1 (invalid_argument); the last failed hostcall said: state_get: 9 bytes at 4294967295 lie outside the memory, which has 65536"},
		{"grows its table", 12, 1000, limits, abi.OK, ""},
		{"grows its table too far", 12, 1 << 20, limits, abi.LimitExceeded, "creature_handle: the guest returned -8 (limit)"},
		{"is refused hostcalls", 13, 150, limits, abi.Trapped, "creature_handle: the guest returned -51 (trapped)"},
		{"answers an unknown status", 14, 0, limits, abi.Trapped, "creature_handle: the guest returned -1000 (trapped)"},
		{"divides by zero", 15, 0, limits, abi.Trapped, "creature_handle: the guest trapped: integer divide by zero (in creature_handle)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			i := instantiate(t, m, c.limits)
			turn := &fakeTurn{}
			err := i.Handle(t.Context(), turn, c.kind, c.size)
			if abi.CodeOf(err) != c.code {
				t.Fatalf("the error is %v, want code %v", err, c.code)
			}
			if c.code == abi.OK {
				return
			}
			if !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("the error is\n%s\nwant\n%s", err, c.text)
			}
			again := i.Handle(t.Context(), turn, abi.KindMessage, 0)
			if abi.CodeOf(again) != abi.Stopped || !errors.Is(again, err) {
				t.Errorf("a broken instance answers %v", again)
			}
			if err := i.Stop(t.Context(), turn); abi.CodeOf(err) != abi.Stopped {
				t.Errorf("Stop of a broken instance answers %v", err)
			}
			fresh := instantiate(t, m, limits)
			if err := fresh.Handle(t.Context(), turn, abi.KindMessage, 0); err != nil {
				t.Errorf("a fresh instance answers %v", err)
			}
		})
	}
}

// Go would end the process.
func TestTranslationThatNestsForEver(t *testing.T) {
	h := newHost(t, Options{Translations: natives.All()})
	m := compile(t, h, readModule(t, "behave"))
	i := instantiate(t, m, &abi.Limits{Deadline: time.Minute, Fuel: 1 << 60, Stack: 1 << 60})
	const recurse = 7
	err := i.Handle(t.Context(), &fakeTurn{}, recurse, 0)
	const want = "creature_handle: the guest trapped: stack overflow; recurse less deeply, or run the module without its translation to Go, whose stack is smaller than the limit stack"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestMemoryLimit(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "behave"))
	i := instantiate(t, m, &abi.Limits{Memory: 4*abi.PageBytes + 1})
	const pages = 64 << 10
	for _, c := range []struct {
		grow int
		want int64 // pages afterwards
	}{{1, 2}, {0, 2}, {3, 2}, {65536, 2}, {2, 4}, {1, 4}} {
		if err := i.Handle(t.Context(), &fakeTurn{}, 6, c.grow); err != nil {
			t.Fatal(err)
		}
		if got := i.MemoryBytes(); got != c.want*pages {
			t.Errorf("after growing by %d the memory has %d bytes, want %d pages", c.grow, got, c.want)
		}
	}
	_, err := m.Instantiate(t.Context(), &abi.Limits{Memory: 100}, &fakeTurn{})
	want := "instantiate: the module starts with 65536 bytes of memory; the limit memory is 100; raise the limit memory, or link the module with a smaller stack and less static data"
	if abi.CodeOf(err) != abi.LimitExceeded || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

func TestTableLimit(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "tables"))
	instantiate(t, m, &abi.Limits{Table: 100})
	_, err := m.Instantiate(t.Context(), &abi.Limits{Table: 99}, &fakeTurn{})
	want := "instantiate: the module's tables start with 100 elements; the limit table is 99; raise the limit table"
	if abi.CodeOf(err) != abi.LimitExceeded || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

// The limit table also applies to growth, and a refused growth returns -1 to
// the guest.
func TestTablesGrowToTheirLimit(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "behave")), &abi.Limits{Table: 10})
	if err := i.Handle(t.Context(), &fakeTurn{}, 12, 9); err != nil {
		t.Errorf("growing to the limit: %v", err)
	}
	if err := i.Handle(t.Context(), &fakeTurn{}, 12, 1); abi.CodeOf(err) != abi.LimitExceeded {
		t.Errorf("growing beyond the limit: %v", err)
	}
}

func TestStartUp(t *testing.T) {
	h := newHost(t, Options{})
	for _, c := range []struct {
		module string
		code   abi.Code
		text   string
	}{
		{"start_loops", abi.Deadline, "start: the guest took more than 10 times the limit deadline, 20ms, to start"},
		{"init_fails", abi.NotFound, "creature_init: the guest returned -2 (not_found)"},
		{"init_traps", abi.Trapped, "_initialize: the guest trapped: unreachable (in _initialize)"},
		{"data_outside", abi.Trapped, "instantiate: the guest trapped: data[0]: out of bounds memory access"},
	} {
		limits := &abi.Limits{Deadline: time.Minute, Fuel: 1 << 60}
		if c.code == abi.Deadline {
			limits.Deadline = 20 * time.Millisecond
		}
		i, err := compile(t, h, readModule(t, c.module)).Instantiate(t.Context(), limits, &fakeTurn{})
		if i != nil || abi.CodeOf(err) != c.code || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%s: the error is\n%v\nwant\n%s", c.module, err, c.text)
		}
	}
	m := compile(t, h, readModule(t, "start_logs"))
	turn := &fakeTurn{}
	i, err := m.Instantiate(t.Context(), nil, turn)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close(t.Context())
	if !slices.Equal(turn.logs, []string{"info start", "info init"}) || len(turn.calls) != 0 {
		t.Errorf("the turn has the logs %q and the calls %q", turn.logs, turn.calls)
	}
}

func TestStopAndClose(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "stop_traps")), nil)
	if err := i.Stop(t.Context(), &fakeTurn{}); abi.CodeOf(err) != abi.Trapped {
		t.Errorf("Stop answers %v", err)
	}
	i = instantiate(t, compile(t, h, readModule(t, "echo")), nil)
	if err := i.Stop(t.Context(), &fakeTurn{}); err != nil {
		t.Errorf("Stop without creature_stop answers %v", err)
	}
	for range 2 {
		if err := i.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Handle of a closed instance answers %v", err)
	}
	if got := i.MemoryBytes(); got != 0 {
		t.Errorf("a closed instance has %d bytes", got)
	}
}

func TestMissingTurn(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "echo"))
	if _, err := m.Instantiate(t.Context(), nil, nil); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("Instantiate answers %v", err)
	}
	i := instantiate(t, m, nil)
	if err := i.Handle(t.Context(), nil, abi.KindMessage, 0); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("Handle answers %v", err)
	}
	if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
		t.Errorf("the instance is unusable: %v", err)
	}
}

// cancellingTurn cancels while the guest runs.
type cancellingTurn struct {
	fakeTurn
	cancel context.CancelFunc
}

func (c *cancellingTurn) Now() int64 { c.cancel(); return 0 }

func TestCallerGivesUp(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "behave"))
	limits := &abi.Limits{Deadline: time.Minute, Calls: 1 << 60, Fuel: 1 << 60}

	i := instantiate(t, m, limits)
	ctx, cancel := context.WithCancel(t.Context())
	err := i.Handle(ctx, &cancellingTurn{cancel: cancel}, 5, 0)
	if abi.CodeOf(err) != abi.Stopped || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}

	i = instantiate(t, m, limits)
	if err := i.Handle(ctx, &fakeTurn{}, 1, 0); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("a turn that cannot begin answers %v", err)
	}
	if err := i.Handle(t.Context(), &fakeTurn{}, 1, 0); err != nil {
		t.Errorf("a turn that could not begin broke the instance: %v", err)
	}
	if _, err := m.Instantiate(ctx, limits, &fakeTurn{}); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Instantiate answers %v", err)
	}

	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := i.Handle(ctx, &fakeTurn{}, 3, 0); abi.CodeOf(err) != abi.Deadline || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// A context that ends between two turns does not break the instance.
func TestOldContextEnds(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "behave")), nil)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			if err := i.Handle(ctx, &fakeTurn{}, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
	}
	if err := i.Handle(context.Background(), &fakeTurn{}, 1, 0); err != nil {
		t.Fatal(err)
	}
}

func TestManyInstancesAtOnce(t *testing.T) {
	h := newHost(t, Options{})
	wasm := readModule(t, "echo")
	behave := compile(t, h, readModule(t, "behave"))
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			m, err := h.Compile(t.Context(), wasm)
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Close(t.Context())
			for n := range 20 {
				i, err := m.Instantiate(t.Context(), nil, &fakeTurn{})
				if err != nil {
					t.Error(err)
					return
				}
				text := fmt.Sprintf("worker %d turn %d", worker, n)
				turn := &fakeTurn{payload: []byte(text)}
				if err := i.Handle(t.Context(), turn, abi.KindMessage, len(text)); err != nil {
					t.Error(err)
				}
				if want := fmt.Sprintf(`send -1 %q ""`, text); !slices.Equal(turn.calls, []string{want}) {
					t.Errorf("the turn has %q, want %q", turn.calls, want)
				}
				i.Close(t.Context())
			}
		})
		wg.Go(func() {
			i, err := behave.Instantiate(t.Context(), &abi.Limits{Deadline: time.Minute, Fuel: 1 << 60}, &fakeTurn{})
			if err != nil {
				t.Error(err)
				return
			}
			defer i.Close(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			if err := i.Handle(ctx, &fakeTurn{}, 3, 0); abi.CodeOf(err) != abi.Deadline {
				t.Errorf("a looping guest answers %v", err)
			}
		})
	}
	wg.Wait()
}

// Fuel counts only the work of the guest: the same turn costs the same with
// the compiler and with the interpreter.
func TestFuelOfATurnIsTheSame(t *testing.T) {
	used := map[abi.Kind]int64{}
	for _, opts := range []Options{{}, {Interpreter: true}} {
		m := compile(t, newHost(t, opts), readModule(t, "behave"))
		for range 3 {
			i := instantiate(t, m, &abi.Limits{Fuel: 10_000_000})
			for _, kind := range []abi.Kind{1, 12, 19, 13, 16, 2, 1} {
				turn := &fakeTurn{}
				err := i.Handle(t.Context(), turn, kind, 10)
				fuel := i.FuelUsed()
				if known, ok := used[kind]; ok && known != fuel {
					t.Errorf("kind %d used %d units of fuel, and %d before", kind, fuel, known)
				}
				if fuel <= 0 {
					t.Errorf("kind %d used %d units of fuel", kind, fuel)
				}
				used[kind] = fuel
				if err != nil {
					i = instantiate(t, m, &abi.Limits{Fuel: 10_000_000})
				}
			}
		}
	}
	if used[16] <= used[1] {
		t.Errorf("a thousand calls used %d units, a single one %d", used[16], used[1])
	}
}

// Slices grow or shrink until they take about the same time, within bounds.
func TestSlicesFollowTheTimeTheyTake(t *testing.T) {
	for _, c := range []struct {
		slice int64
		took  time.Duration
		want  int64
	}{
		{firstSlice, sliceTime, firstSlice},
		{firstSlice, sliceTime / 10, 2 * firstSlice},
		{largestSlice, 0, largestSlice},
		{50_000, 5 * sliceTime, 10_000},
		{50_000, time.Hour, 50_000 / 16},
		{smallestSlice, time.Hour, smallestSlice},
	} {
		if got := nextSlice(c.slice, c.took); got != c.want {
			t.Errorf("after %d units in %v come %d, want %d", c.slice, c.took, got, c.want)
		}
	}
}

// A call that uses exactly its fuel succeeds, and one unit less is too little,
// wherever the last check was.
func TestFuelLimitIsExact(t *testing.T) {
	m := compile(t, newHost(t, Options{}), readModule(t, "script"))
	for calls := range 40 {
		s := newScript(40)
		for range calls {
			s.call(functionNumber(t, "random"), scriptScratch, uint64(100*calls))
		}
		turn := &fakeTurn{payload: s.payload(t)}
		handle := func(fuel int64) (*Instance, error) {
			i := instantiate(t, m, nil)
			i.call.bounds.fuel, i.call.budget.Limit = fuel, fuel
			return i, i.Handle(t.Context(), turn, abi.KindMessage, len(turn.payload))
		}
		i, err := handle(1 << 40)
		if err != nil {
			t.Fatal(err)
		}
		used := i.FuelUsed()
		if _, err := handle(used); err != nil {
			t.Errorf("%d calls use %d units, and with as many: %v", calls, used, err)
		}
		if _, err := handle(used - 1); abi.CodeOf(err) != abi.OutOfFuel {
			t.Errorf("%d calls use %d units, and with one less: %v", calls, used, err)
		}
	}
}
