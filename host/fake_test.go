package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/testdata/natives"
)

func TestMain(m *testing.M) {
	if code, ok := serveCompiler(); ok {
		os.Exit(code)
	}
	keys, err := os.MkdirTemp("", "terrarium-keys-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", keys) // the key of the user's own caches is not for tests
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(keys)
		os.Exit(code)
	}))
}

// fakeTurn records the calls of the host as text, and returns the results that
// a test sets.
type fakeTurn struct {
	keys      []byte // the result of state_list; nil: two keys
	pages     int    // of keys passed to it
	payload   []byte
	config    []byte // the result of Config
	defaults  bool   // whether Config finds no key
	state     map[string]string
	absent    map[abi.Feature]bool
	fail      abi.Code // the result of every fallible method, unless OK
	lastError string
	now       int64

	calls []string
	logs  []string
}

var _ abi.Turn = (*fakeTurn)(nil)

func (f *fakeTurn) note(format string, args ...any) abi.Code {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	if f.fail != abi.OK {
		f.lastError = "the turn says " + f.fail.String()
	}
	return f.fail
}

func (f *fakeTurn) Source(s abi.Source) ([]byte, abi.Code) {
	if s == abi.SourcePayload {
		return f.payload, abi.OK
	}
	return []byte(abi.Sources[s].Name), f.note("source %s", abi.Sources[s].Name)
}
func (f *fakeTurn) HasFeature(x abi.Feature) bool { return !f.absent[x] }
func (f *fakeTurn) LastError() string             { return f.lastError }
func (f *fakeTurn) Config(key []byte) ([]byte, abi.Code) {
	if f.defaults {
		f.lastError = "no such key"
		return nil, abi.NotFound
	}
	return f.config, f.note("config %q", key)
}
func (f *fakeTurn) Channel(alias []byte) int32 {
	if c := f.note("channel %q", alias); c != abi.OK {
		return c.Status()
	}
	return 7
}
func (f *fakeTurn) Send(ch int32, payload, headers []byte) int32 {
	if c := f.note("send %d %q %q", ch, payload, headers); c != abi.OK {
		return c.Status()
	}
	return 2
}
func (f *fakeTurn) SendTo(to, payload []byte) abi.Code { return f.note("send_to %q %q", to, payload) }
func (f *fakeTurn) Request(to, payload []byte, d time.Duration, tag int64) abi.Code {
	return f.note("request %q %q %v %d", to, payload, d, tag)
}
func (f *fakeTurn) Reply(payload []byte) abi.Code  { return f.note("reply %q", payload) }
func (f *fakeTurn) Output(payload []byte) abi.Code { return f.note("output %q", payload) }
func (f *fakeTurn) StateGet(key []byte) ([]byte, abi.Code) {
	if c := f.note("state_get %q", key); c != abi.OK {
		return nil, c
	}
	v, ok := f.state[string(key)]
	if !ok {
		f.lastError = "no such key"
		return nil, abi.NotFound
	}
	return []byte(v), abi.OK
}
func (f *fakeTurn) StateSet(key, value []byte) abi.Code {
	return f.note("state_set %q %q", key, value)
}
func (f *fakeTurn) StateDelete(key []byte) (bool, abi.Code) {
	_, ok := f.state[string(key)]
	return ok, f.note("state_delete %q", key)
}
func (f *fakeTurn) StateList(prefix []byte, page func([]byte)) abi.Code {
	code := f.note("state_list %q", prefix)
	switch {
	case code != abi.OK:
	case f.keys != nil:
		for keys := range slices.Chunk(f.keys, 1000) {
			f.pages++
			page(keys)
		}
	default:
		page([]byte("a\x00b\x00"))
	}
	return code
}
func (f *fakeTurn) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	return f.note("timer_set %q %v %v %q", name, delay, period, payload)
}
func (f *fakeTurn) TimerCancel(name []byte) (bool, abi.Code) {
	return true, f.note("timer_cancel %q", name)
}
func (f *fakeTurn) Tool(name, args []byte) ([]byte, abi.Code) {
	return []byte(`{"ok":true}`), f.note("tool %q %q", name, args)
}
func (f *fakeTurn) HTTP(request, body []byte, tag int64) abi.Code {
	return f.note("http %q %q %d", request, body, tag)
}
func (f *fakeTurn) Log(level abi.Level, text []byte) abi.Code {
	f.logs = append(f.logs, level.String()+" "+string(text))
	return abi.OK
}
func (f *fakeTurn) Now() int64 { return f.now }
func (f *fakeTurn) Random(p []byte) {
	f.calls = append(f.calls, fmt.Sprintf("random %d", len(p)))
	for i := range p {
		p[i] = 'r'
	}
}

// newHost makes a host. TERRARIUM_TRANSLATED=1 gives it the translations of the modules in
// testdata, so that all tests can run with them.
func newHost(t testing.TB, opts Options) *Host {
	t.Helper()
	if opts.Translations == nil && os.Getenv("TERRARIUM_TRANSLATED") != "" {
		opts.Translations = natives.All()
	}
	h, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func readModule(t testing.TB, name string) []byte {
	t.Helper()
	return readFile(t, filepath.Join("testdata", name+".wasm"))
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func compile(t testing.TB, h *Host, wasm []byte) abi.Module {
	t.Helper()
	m, err := h.Compile(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func instantiate(t testing.TB, m abi.Module, limits *abi.Limits) *Instance {
	t.Helper()
	i, err := m.Instantiate(t.Context(), limits, &fakeTurn{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return i.(*Instance)
}

// Addresses in a script guest; see testdata/script.wat.
const (
	scriptAt      = 4096
	scriptHeader  = 8
	scriptCall    = 56
	scriptMemory  = 2 * abi.PageBytes
	scriptScratch = 65536 + 8192
)

// script is a program for a script guest. at makes pointers to its data.
type script struct {
	status  int32
	calls   [][7]uint64
	data    []byte
	reserve int // the number of calls for which space is reserved; at puts data behind it
}

func newScript(reserve int) *script { return &script{reserve: reserve} }

// at appends data and returns its address and length.
func (s *script) at(text string) (ptr, length uint64) {
	ptr = scriptAt + scriptHeader + uint64(s.reserve)*scriptCall + uint64(len(s.data))
	s.data = append(s.data, text...)
	return ptr, uint64(len(text))
}

func (s *script) call(function int, args ...uint64) {
	var c [7]uint64
	c[0] = uint64(function)
	copy(c[1:], args)
	s.calls = append(s.calls, c)
}

func (s *script) payload(t testing.TB) []byte {
	t.Helper()
	if len(s.calls) > s.reserve {
		t.Fatalf("the script has %d calls and room for %d", len(s.calls), s.reserve)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(s.status))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.calls)))
	for _, c := range s.calls {
		for _, v := range c {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	b = append(b, make([]byte, (s.reserve-len(s.calls))*scriptCall)...)
	return append(b, s.data...)
}

// results takes the results of a script from the last log line.
func results(t testing.TB, f *fakeTurn) []int64 {
	t.Helper()
	if len(f.logs) == 0 {
		t.Fatal("the script has logged nothing")
	}
	b := []byte(f.logs[len(f.logs)-1][len("debug "):])
	var out []int64
	for ; len(b) >= 8; b = b[8:] {
		out = append(out, int64(binary.LittleEndian.Uint64(b)))
	}
	return out
}

func functionNumber(t testing.TB, name string) int {
	t.Helper()
	for i, f := range abi.Functions {
		if f.Name == name {
			return i
		}
	}
	t.Fatalf("there is no function %s", name)
	return -1
}

func wasiNumber(t testing.TB, name string) int {
	t.Helper()
	for i, f := range wasiTable {
		if f.name == name {
			return i
		}
	}
	t.Fatalf("there is no function %s", name)
	return -1
}
