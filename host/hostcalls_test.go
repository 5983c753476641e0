package host

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/abi"
)

// The indexes of every pointer and its length among the parameters of a
// function.
func ranges(f abi.Function) (out [][2]int) {
	for i, p := range f.Params {
		if strings.HasSuffix(p.Name, "ptr") {
			out = append(out, [2]int{i, i + 1})
		}
	}
	return out
}

func TestTableIsImplemented(t *testing.T) {
	for _, f := range abi.Functions {
		if hostcalls[f.Name] == nil {
			t.Errorf("%s has no implementation", f.Name)
		}
	}
	if len(hostcalls) != len(abi.Functions) {
		t.Errorf("%d functions are implemented, the table has %d", len(hostcalls), len(abi.Functions))
	}
}

// runScript runs a script as a turn and returns the turn and the results.
func runScript(t *testing.T, i abi.Instance, s *script, turn *fakeTurn) []int64 {
	t.Helper()
	turn.payload = s.payload(t)
	if err := i.Handle(t.Context(), turn, abi.KindMessage, len(turn.payload)); err != nil {
		t.Fatal(err)
	}
	return results(t, turn)
}

// fuelLeft stands for any part of the fuel of a turn, but not all.
const fuelLeft = math.MinInt64

func TestHostcallsReachTheTurn(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	for _, c := range []struct {
		function string
		args     func(s *script) []uint64
		want     int64
		call     string
	}{
		{"size", func(*script) []uint64 { return []uint64{uint64(abi.SourceSender)} }, 6, "source sender"},
		{"feature", func(*script) []uint64 { return []uint64{uint64(abi.FeatureTimers)} }, 1, ""},
		{"feature", func(*script) []uint64 { return []uint64{uint64(abi.FeatureFuel)} }, 1, ""},
		{"feature", func(*script) []uint64 { return []uint64{99} }, 0, ""},
		{"config", func(s *script) []uint64 { p, n := s.at("key"); return []uint64{p, n, scriptScratch, 2} }, 5, `config "key"`},
		{"channel", func(s *script) []uint64 { p, n := s.at("alerts"); return []uint64{p, n} }, 7, `channel "alerts"`},
		{"send", func(s *script) []uint64 {
			p, n := s.at("hello")
			hp, hn := s.at("k\x00v\x00")
			return []uint64{math.MaxUint64, p, n, hp, hn}
		}, 2, `send -1 "hello" "k\x00v\x00"`},
		{"send_to", func(s *script) []uint64 { p, n := s.at("bob"); q, m := s.at("hi"); return []uint64{p, n, q, m} }, 0, `send_to "bob" "hi"`},
		{"request", func(s *script) []uint64 {
			p, n := s.at("bob")
			q, m := s.at("hi")
			return []uint64{p, n, q, m, 1500, 42}
		}, 0, `request "bob" "hi" 1.5s 42`},
		{"request", func(s *script) []uint64 { return []uint64{0, 0, 0, 0, math.MaxInt64, 1} }, 0, `request "" "" 2562047h47m16.854775807s 1`},
		{"request", func(s *script) []uint64 { return []uint64{0, 0, 0, 0, math.MaxUint64, 1} }, -1, ""},
		{"reply", func(s *script) []uint64 { p, n := s.at("yes"); return []uint64{p, n} }, 0, `reply "yes"`},
		{"output", func(s *script) []uint64 { p, n := s.at("line"); return []uint64{p, n} }, 0, `output "line"`},
		{"state_get", func(s *script) []uint64 { p, n := s.at("k"); return []uint64{p, n, scriptScratch, 100} }, 5, `state_get "k"`},
		{"state_get", func(s *script) []uint64 { p, n := s.at("none"); return []uint64{p, n, scriptScratch, 100} }, -2, `state_get "none"`},
		{"state_set", func(s *script) []uint64 { p, n := s.at("k"); q, m := s.at("v"); return []uint64{p, n, q, m} }, 0, `state_set "k" "v"`},
		{"state_delete", func(s *script) []uint64 { p, n := s.at("k"); return []uint64{p, n} }, 1, `state_delete "k"`},
		{"state_delete", func(s *script) []uint64 { p, n := s.at("none"); return []uint64{p, n} }, 0, `state_delete "none"`},
		{"state_list", func(s *script) []uint64 { p, n := s.at("p/"); return []uint64{p, n, 0, 0} }, 4, `state_list "p/"`},
		{"timer_set", func(s *script) []uint64 {
			p, n := s.at("tick")
			q, m := s.at("x")
			return []uint64{p, n, 10, 20, q, m}
		}, 0, `timer_set "tick" 10ms 20ms "x"`},
		{"timer_set", func(s *script) []uint64 { return []uint64{0, 0, math.MaxUint64, 0, 0, 0} }, -1, ""},
		{"timer_set", func(s *script) []uint64 { return []uint64{0, 0, 0, math.MaxUint64, 0, 0} }, -1, ""},
		{"timer_cancel", func(s *script) []uint64 { p, n := s.at("tick"); return []uint64{p, n} }, 1, `timer_cancel "tick"`},
		{"tool", func(s *script) []uint64 {
			p, n := s.at("group_status")
			q, m := s.at("{}")
			return []uint64{p, n, q, m}
		}, 11, `tool "group_status" "{}"`},
		{"http", func(s *script) []uint64 { p, n := s.at("GET"); return []uint64{p, n, 0, 0, 5} }, 0, `http "GET" "" 5`},
		{"log", func(s *script) []uint64 { p, n := s.at("hm"); return []uint64{2, p, n} }, 0, ""},
		{"log", func(s *script) []uint64 { return []uint64{4, 0, 0} }, -1, ""},
		{"log", func(s *script) []uint64 { return []uint64{math.MaxUint64, 0, 0} }, -1, ""},
		{"now", func(*script) []uint64 { return nil }, 1234, ""},
		{"random", func(*script) []uint64 { return []uint64{scriptScratch, 3} }, 0, "random 3"},
		{"random", func(*script) []uint64 { return []uint64{scriptScratch, 0} }, 0, ""},
		{"fuel_left", func(*script) []uint64 { return nil }, fuelLeft, ""},
	} {
		s := newScript(1)
		s.call(functionNumber(t, c.function), c.args(s)...)
		turn := &fakeTurn{now: 1234, config: []byte("value"), state: map[string]string{"k": "hello"}}
		got := runScript(t, i, s, turn)
		if got[0] != c.want && (c.want != fuelLeft || got[0] <= 0 || got[0] >= abi.DefaultLimits.Fuel) {
			t.Errorf("%s answers %d, want %d", c.function, got[0], c.want)
		}
		var want []string
		if c.call != "" {
			want = []string{c.call}
		}
		if diff := cmp.Diff(want, turn.calls); diff != "" {
			t.Errorf("%s reaches the turn as (-want +got):\n%s", c.function, diff)
		}
	}
}

// No argument may trap the guest or reach the turn unless it lies in memory.
func TestHostcallsRefuseBadPointers(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	bad := []struct {
		name        string
		ptr, length uint64
	}{
		{"negative length", scriptScratch, uint64(uint32(math.MaxUint32))},
		{"smallest length", scriptScratch, 1 << 31},
		{"past the end", scriptMemory, 1},
		{"over the end", scriptMemory - 4, 5},
		{"pointer wraps", math.MaxUint32, 2},
		{"length to the limit", 1, math.MaxInt32},
	}
	for n, f := range abi.Functions {
		for _, r := range ranges(f) {
			for _, b := range bad {
				s := newScript(3)
				args := make([]uint64, 6)
				args[r[0]], args[r[1]] = b.ptr, b.length
				s.call(n, args...)
				s.call(functionNumber(t, "size"), uint64(abi.SourceError))
				s.call(functionNumber(t, "size"), uint64(abi.SourceResult))
				turn := &fakeTurn{}
				got := runScript(t, i, s, turn)
				if got[0] != int64(abi.InvalidArgument.Status()) || got[1] <= 0 || got[2] != 0 {
					t.Errorf("%s with %s (%s): answers %v, want invalid_argument and a text", f.Name, f.Params[r[0]].Name, b.name, got)
				}
				if len(turn.calls) != 0 {
					t.Errorf("%s with %s (%s) reached the turn: %q", f.Name, f.Params[r[0]].Name, b.name, turn.calls)
				}
			}
		}
	}
}

// A range of length zero is never read.
func TestHostcallsAllowEmptyRangesAnywhere(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	for n, f := range abi.Functions {
		s := newScript(1)
		args := make([]uint64, 6)
		for _, r := range ranges(f) {
			args[r[0]] = math.MaxUint32
		}
		s.call(n, args...)
		turn := &fakeTurn{state: map[string]string{"": ""}}
		if got := runScript(t, i, s, turn); got[0] < 0 {
			t.Errorf("%s answers %d", f.Name, got[0])
		}
	}
}

func TestReadClamps(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	read, log := functionNumber(t, "read"), functionNumber(t, "log")
	s := newScript(8)
	source := uint64(abi.SourceSender) // "sender"
	s.call(read, source, 0, scriptScratch, 3)
	s.call(read, source, 4, scriptScratch+3, 100)
	s.call(read, source, 6, scriptScratch, 100)
	s.call(read, source, 1000, scriptScratch, 100)
	s.call(read, source, uint64(uint32(math.MaxUint32)), scriptScratch, 100)
	s.call(read, 99, 0, scriptScratch, 100)
	s.call(read, uint64(uint32(math.MaxUint32)), 0, scriptScratch, 100)
	s.call(log, 1, scriptScratch, 5)
	turn := &fakeTurn{}
	got := runScript(t, i, s, turn)
	if want := []int64{3, 2, 0, 0, -1, -2, -2, 0}; !slices.Equal(got, want) {
		t.Errorf("read answers %v, want %v", got, want)
	}
	if !slices.Contains(turn.logs, "info sener") {
		t.Errorf("the guest's memory has %q", turn.logs)
	}
}

// readBack makes a script log a source.
func readBack(t *testing.T, s *script, source abi.Source) {
	s.call(functionNumber(t, "read"), uint64(source), 0, scriptScratch, 200)
	s.call(functionNumber(t, "log"), 1, scriptScratch, 200)
}

func TestSourceResultAndError(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	s := newScript(12)
	key, n := s.at("k")
	missing, m := s.at("missing")
	get := functionNumber(t, "state_get")
	s.call(get, key, n, 0, 0)
	s.call(get, missing, m, 0, 0) // fails: the result stays
	readBack(t, s, abi.SourceResult)
	readBack(t, s, abi.SourceError)
	s.call(functionNumber(t, "send_to"), 1<<31, 5, 0, 0) // the host's own text
	s.call(get, key, n, 0, 0)                            // succeeds: the error stays
	readBack(t, s, abi.SourceError)
	turn := &fakeTurn{state: map[string]string{"k": "the whole value"}}
	got := runScript(t, i, s, turn)
	if got[0] != 15 || got[1] != -2 || got[2] != 15 {
		t.Errorf("results are %v", got)
	}
	want := []string{"the whole value", "no such key", "send_to: 5 bytes at 2147483648 lie outside the memory, which has 131072"}
	for n, w := range want {
		if text := strings.TrimRight(strings.TrimPrefix(turn.logs[n], "info "), "\x00"); !strings.HasPrefix(text, w) {
			t.Errorf("log %d is %q, want %q", n, text, w)
		}
	}
	// The next turn sees none of it.
	s = newScript(2)
	s.call(functionNumber(t, "size"), uint64(abi.SourceResult))
	s.call(functionNumber(t, "size"), uint64(abi.SourceError))
	if got := runScript(t, i, s, &fakeTurn{lastError: "of another turn"}); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("the next turn finds %v", got)
	}
}

func TestTurnsCodesAreAnswered(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	silent := map[string]bool{"size": true, "read": true, "feature": true, "log": true, "now": true, "random": true, "fuel_left": true}
	for n, f := range abi.Functions {
		if silent[f.Name] {
			continue
		}
		s := newScript(2)
		s.call(n)
		s.call(functionNumber(t, "size"), uint64(abi.SourceError))
		turn := &fakeTurn{fail: abi.NotConnected}
		got := runScript(t, i, s, turn)
		if got[0] != int64(abi.NotConnected.Status()) || got[1] != int64(len(turn.lastError)) {
			t.Errorf("%s answers %v", f.Name, got)
		}
	}
}

func TestPhaseAndFeatures(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "script"))
	s := newScript(len(abi.Functions))
	for n := range abi.Functions {
		s.call(n)
	}
	check := func(phase string, turn *fakeTurn) {
		t.Helper()
		for n, got := range results(t, turn) {
			f := abi.Functions[n]
			if denied := got == int64(abi.Denied.Status()); denied != f.Effect {
				t.Errorf("%s in %s answers %d", f.Name, phase, got)
			}
		}
	}
	init := &fakeTurn{payload: s.payload(t)}
	i, err := m.Instantiate(t.Context(), nil, init)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close(t.Context())
	check("creature_init", init)

	absent := map[abi.Feature]bool{}
	for _, f := range abi.Features {
		absent[f.Feature] = true
	}
	for n, got := range runScript(t, i, s, &fakeTurn{absent: absent}) {
		f := abi.Functions[n]
		if unsupported := got == int64(abi.Unsupported.Status()); unsupported != (f.Feature >= 0) {
			t.Errorf("%s without its feature answers %d", f.Name, got)
		}
	}
	documents := newScript(3)
	documents.call(functionNumber(t, "size"), uint64(abi.SourceAwarenessJSON))
	documents.call(functionNumber(t, "read"), uint64(abi.SourceAwarenessMarkdown), 0, scriptScratch, 10)
	documents.call(functionNumber(t, "size"), uint64(abi.SourceError))
	got := runScript(t, i, documents, &fakeTurn{absent: absent})
	if unsupported := int64(abi.Unsupported.Status()); got[0] != unsupported || got[1] != unsupported || got[2] == 0 {
		t.Errorf("awareness without its feature answers %v", got)
	}
	features := newScript(2) // the turn has all features, and is not asked about unknown ones
	features.call(functionNumber(t, "feature"), uint64(len(abi.Features)-1))
	features.call(functionNumber(t, "feature"), uint64(len(abi.Features)))
	if got := runScript(t, i, features, &fakeTurn{}); got[0] != 1 || got[1] != 0 {
		t.Errorf("the last feature and the one after it: %v", got)
	}
	stop := &fakeTurn{payload: s.payload(t)}
	if err := i.Stop(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	check("creature_stop", stop)
}

// panicTurn panics, like a turn with a defect.
type panicTurn struct{ fakeTurn }

func (*panicTurn) Now() int64 { panic("boom") }

func TestDefectOfTheTurnIsContained(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	s := newScript(1)
	s.call(functionNumber(t, "now"))
	turn := &panicTurn{fakeTurn{payload: s.payload(t)}}
	err := i.Handle(t.Context(), turn, abi.KindMessage, 0)
	if abi.CodeOf(err) != abi.Internal || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the error is %v, want internal: boom", err)
	}
}

// TestListedKeysCostFuel lists more and more keys: each costs fuel.
func TestListedKeysCostFuel(t *testing.T) {
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, readModule(t, "script")), nil)
	used := func(keys int) int64 {
		s := newScript(1)
		p, n := s.at("k")
		s.call(functionNumber(t, "state_list"), p, n, 0, 0)
		turn := &fakeTurn{keys: bytes.Repeat([]byte("k1234567\x00"), keys)}
		if got := runScript(t, i, s, turn); got[0] != int64(len(turn.keys)) {
			t.Fatalf("%d keys have %d bytes", keys, got[0])
		}
		return i.FuelUsed()
	}
	one := used(1)
	for _, keys := range []int{2, 100, 100_000} {
		if cost, least := used(keys)-one, int64(keys-1)*listUnits; cost < least {
			t.Errorf("%d keys more cost %d units, want %d at least", keys-1, cost, least)
		}
	}
}

// A list that costs more than the remaining fuel ends before it is complete.
func TestLongListEndsWithTheFuel(t *testing.T) {
	h := newHost(t, Options{})
	const keys = 100_000
	i := instantiate(t, compile(t, h, readModule(t, "script")), &abi.Limits{Fuel: keys * listUnits / 10})
	s := newScript(1)
	p, n := s.at("k")
	s.call(functionNumber(t, "state_list"), p, n, 0, 0)
	turn := &fakeTurn{keys: bytes.Repeat([]byte("k1234567\x00"), keys), payload: s.payload(t)}
	err := i.Handle(t.Context(), turn, abi.KindMessage, 0)
	if abi.CodeOf(err) != abi.OutOfFuel {
		t.Errorf("the error is %v, want out_of_fuel", err)
	}
	if all := len(turn.keys) / 1000; turn.pages == 0 || turn.pages > all/8 {
		t.Errorf("%d of %d pages were handed over", turn.pages, all)
	}
}

// The arguments of a tool are charged before they are processed, even if the
// call is refused afterwards.
func TestToolArgumentsArePaidForFirst(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "script"))
	const size = 20_000
	used := func(size int) (fuel int64, calls int) {
		i := instantiate(t, m, nil)
		s := newScript(1)
		name, n := s.at("group_status")
		args, _ := s.at(strings.Repeat("x", size))
		s.call(functionNumber(t, "tool"), name, n, args, uint64(size))
		turn := &fakeTurn{payload: s.payload(t)}
		if err := i.Handle(t.Context(), turn, abi.KindMessage, 0); err != nil {
			t.Fatal(err)
		}
		return i.FuelUsed(), len(turn.calls)
	}
	little, _ := used(0)
	much, _ := used(size)
	if cost := much - little; cost < size*toolPasses/bytesPerUnit {
		t.Errorf("%d bytes of arguments cost %d units", size, cost)
	}
	i := instantiate(t, m, &abi.Limits{Fuel: little + size*toolPasses/bytesPerUnit/2})
	s := newScript(1)
	name, n := s.at("group_status")
	args, _ := s.at(strings.Repeat("x", size))
	s.call(functionNumber(t, "tool"), name, n, args, size)
	turn := &fakeTurn{payload: s.payload(t)}
	if err := i.Handle(t.Context(), turn, abi.KindMessage, 0); abi.CodeOf(err) != abi.OutOfFuel || len(turn.calls) != 0 {
		t.Errorf("with half the fuel: %v, after %d calls", err, len(turn.calls))
	}
}

// wideTurn sends on a hundred channels, and has documents and tool results of
// 10,000 bytes.
type wideTurn struct{ fakeTurn }

var tenThousand = make([]byte, 10_000)

func (*wideTurn) Send(int32, []byte, []byte) int32       { return 100 }
func (*wideTurn) Tool([]byte, []byte) ([]byte, abi.Code) { return tenThousand, abi.OK }
func (w *wideTurn) Source(s abi.Source) ([]byte, abi.Code) {
	if s == abi.SourcePayload {
		return w.payload, abi.OK
	}
	return tenThousand, abi.OK
}

// Unusual work of a hostcall for the guest is charged.
func TestWorkOfHostcallsIsPaidFor(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "script"))
	plain := int64(0)
	for i, c := range []struct {
		call  string
		args  []uint64
		least int64
	}{
		{"size", []uint64{uint64(abi.SourceChannel)}, 0},
		{"send", nil, 99 * channelUnits},
		{"size", []uint64{uint64(abi.SourceAwarenessJSON)}, 10_000 * composePasses / bytesPerUnit},
		{"size", []uint64{uint64(abi.SourceAwarenessMarkdown)}, 10_000 * composePasses / bytesPerUnit},
		{"tool", nil, toolUnits + 10_000*resultPasses/bytesPerUnit},
		{"http", []uint64{0, 8000, 0, 0}, reachUnits + 8000*(1+reachPasses)/bytesPerUnit},
		{"output", []uint64{0, 8000}, 8000 * (1 + outputPasses) / bytesPerUnit},
	} {
		inst := instantiate(t, m, nil)
		s := newScript(1)
		s.call(functionNumber(t, c.call), c.args...)
		turn := &wideTurn{}
		turn.payload = s.payload(t)
		if err := inst.Handle(t.Context(), turn, abi.KindMessage, len(turn.payload)); err != nil {
			t.Fatal(c.call, err)
		}
		if i == 0 {
			plain = inst.FuelUsed()
		}
		if cost := inst.FuelUsed() - plain; cost < c.least || cost > c.least+200 {
			t.Errorf("%s %v costs %d units more than size, want %d", c.call, c.args, cost, c.least)
		}
	}
}

// A request to a capability costs more than one to a creature, and is charged before it is
// processed, whatever the outcome.
func TestRequestsToCapabilitiesArePaidForFirst(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, readModule(t, "script"))
	const size = 20_000
	used := func(to string, limits *abi.Limits) (fuel int64, calls int, err error) {
		i := instantiate(t, m, limits)
		s := newScript(1)
		name, n := s.at(to)
		body, _ := s.at(strings.Repeat("x", size))
		s.call(functionNumber(t, "request"), name, n, body, size, 1, 0)
		turn := &fakeTurn{payload: s.payload(t)}
		err = i.Handle(t.Context(), turn, abi.KindMessage, 0)
		return i.FuelUsed(), len(turn.calls), err
	}
	creature, _, err := used("capabilityXecho", nil)
	if err != nil {
		t.Fatal(err)
	}
	capability, calls, err := used("capability:echo", nil)
	if err != nil || calls != 1 {
		t.Fatal(calls, err)
	}
	if cost, want := capability-creature, int64(reachUnits+size*reachPasses/bytesPerUnit); cost != want {
		t.Errorf("a request to a capability costs %d units more, want %d", cost, want)
	}
	if _, calls, err := used("capability:echo", &abi.Limits{Fuel: (creature + capability) / 2}); abi.CodeOf(err) != abi.OutOfFuel || calls != 0 {
		t.Errorf("with too little fuel: %v, after %d calls", err, calls)
	}
}
