package host

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// buildGoGuest builds the test creature in standard Go.
func buildGoGuest(t testing.TB) []byte { return buildGo(t, "./testdata/goguest") }

// buildGo builds a creature in standard Go. It needs only the toolchain that
// runs the test.
func buildGo(t testing.TB, pkg string) []byte {
	t.Helper()
	target := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", target, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	wasm, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestGoGuest(t *testing.T) {
	h := newHost(t, Options{})
	m := compile(t, h, buildGoGuest(t))
	limits := &abi.Limits{Deadline: time.Minute}
	i := instantiate(t, m, limits)
	now := time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC).UnixNano()
	say := func(i *Instance, payload string) (*fakeTurn, error) {
		turn := &fakeTurn{payload: []byte(payload), now: now}
		return turn, i.Handle(t.Context(), turn, abi.KindMessage, len(payload))
	}
	for _, c := range []struct {
		payload, sent string
		logs          []string
	}{
		{"hello", "1 hello", nil},
		{"print", "2 print", []string{"info one", "info two", "info three words", "warn careful", "info no newline"}},
		{"sleep", "3 1h0m0s", nil},
		{"wait", "4 012", nil},
		{"world", `5 rrrr [] 0 true 2024-02-29T12:00:00.000000005Z`, nil},
	} {
		turn, err := say(i, c.payload)
		if err != nil {
			t.Fatalf("%s: %v", c.payload, err)
		}
		sent := slices.DeleteFunc(turn.calls, func(s string) bool { return strings.HasPrefix(s, "random") })
		if want := []string{`send -1 ` + quote(c.sent) + ` ""`}; !slices.Equal(sent, want) {
			t.Errorf("%s: the turn has %q, want %q", c.payload, sent, want)
		}
		if !slices.Equal(turn.logs, c.logs) {
			t.Errorf("%s: the log has %q, want %q", c.payload, turn.logs, c.logs)
		}
	}
	for payload, text := range map[string]string{
		"panic": "; it said: panic: as asked",
		"exit":  "creature_handle: the guest exited with status 4",
	} {
		_, err := say(instantiate(t, m, limits), payload)
		if abi.CodeOf(err) != abi.Trapped || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error is %v, want %s", payload, err, text)
		}
	}
	compareGo(t, m, messages("hello", "print", "sleep", "wait", "world", "hello"), messages("panic"), messages("exit"))
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func wasiScript(t *testing.T) *Instance {
	return instantiate(t, compile(t, newHost(t, Options{}), readModule(t, "script_wasi")), nil)
}

// Every function of WASI returns a result for any arguments.
func TestWASIFunctionsAnswerAnything(t *testing.T) {
	i := wasiScript(t)
	for n, f := range wasiTable {
		for _, v := range []uint64{0, 1, 2, 3, scriptMemory, math.MaxUint32, math.MaxUint64} {
			s := newScript(1)
			s.call(n, v, v, v, v, v, v)
			got := runScript(t, i, s, &fakeTurn{})
			if got[0] < 0 || got[0] > 76 {
				t.Errorf("%s of %d answers %d", f.name, v, got[0])
			}
		}
	}
}

func TestWASIResults(t *testing.T) {
	i := wasiScript(t)
	for _, c := range []struct {
		function string
		args     []uint64
		want     errno
	}{
		{"args_sizes_get", []uint64{scriptScratch, scriptScratch + 4}, errnoSuccess},
		{"args_sizes_get", []uint64{scriptScratch, scriptMemory}, errnoFault},
		{"environ_sizes_get", []uint64{scriptScratch, scriptScratch + 4}, errnoSuccess},
		{"clock_time_get", []uint64{clockRealtime, 1, scriptScratch}, errnoSuccess},
		{"clock_time_get", []uint64{clockMonotonic, 1, scriptMemory - 7}, errnoFault},
		{"clock_time_get", []uint64{2, 1, scriptScratch}, errnoInval},
		{"clock_res_get", []uint64{clockMonotonic, scriptScratch}, errnoSuccess},
		{"clock_res_get", []uint64{7, scriptScratch}, errnoInval},
		{"fd_fdstat_get", []uint64{stderr, scriptScratch}, errnoSuccess},
		{"fd_fdstat_get", []uint64{3, scriptScratch}, errnoBadf},
		{"fd_fdstat_get", []uint64{stdin, scriptMemory - 1}, errnoFault},
		{"fd_filestat_get", []uint64{stdout, scriptScratch}, errnoSuccess},
		{"fd_filestat_get", []uint64{stdout, scriptMemory}, errnoFault},
		{"fd_prestat_get", []uint64{3, scriptScratch}, errnoBadf},
		{"fd_read", []uint64{stdin, 0, 0, scriptScratch}, errnoSuccess},
		{"fd_read", []uint64{stdout, 0, 0, scriptScratch}, errnoBadf},
		{"fd_seek", []uint64{stdout, 0, 0, scriptScratch}, errnoSpipe},
		{"fd_write", []uint64{3, 0, 0, scriptScratch}, errnoBadf},
		{"fd_write", []uint64{stdout, scriptScratch, math.MaxUint32, scriptScratch}, errnoFault},
		{"fd_write", []uint64{stdout, scriptMemory - 4, 1, scriptScratch}, errnoFault},
		{"random_get", []uint64{scriptScratch, 8}, errnoSuccess},
		{"random_get", []uint64{scriptMemory - 1, 8}, errnoFault},
		{"poll_oneoff", []uint64{scriptScratch, scriptScratch, 0, scriptScratch}, errnoInval},
		{"poll_oneoff", []uint64{scriptScratch, scriptScratch, math.MaxUint32, scriptScratch}, errnoFault},
		{"poll_oneoff", []uint64{scriptMemory, scriptScratch, 1, scriptScratch}, errnoFault},
		{"poll_oneoff", []uint64{scriptScratch, scriptMemory, 1, scriptScratch}, errnoFault},
		{"sched_yield", nil, errnoSuccess},
		{"path_open", []uint64{3}, errnoBadf},
		{"proc_raise", []uint64{9}, errnoNosys},
		{"sock_accept", nil, errnoNotsup},
	} {
		s := newScript(1)
		s.call(wasiNumber(t, c.function), c.args...)
		if got := runScript(t, i, s, &fakeTurn{}); errno(got[0]) != c.want {
			t.Errorf("%s%v answers %d, want %d", c.function, c.args, got[0], c.want)
		}
	}
}

// write appends an fd_write of one vector.
func (s *script) write(t *testing.T, fd uint64, text string) {
	p, n := s.at(text)
	iov, _ := s.at(string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(p)), uint32(n))))
	s.call(wasiNumber(t, "fd_write"), fd, iov, 1, scriptScratch)
}

func TestOutputBecomesLogLines(t *testing.T) {
	i := wasiScript(t)
	s := newScript(10)
	long := strings.Repeat("x", maxLine)
	s.write(t, stdout, "a\nb")
	s.write(t, stderr, "problem\r\n\n")
	s.write(t, stdout, "c\nd\n")
	s.write(t, stdout, long+"y\n")
	s.write(t, stdout, long)
	s.write(t, stdout, "z\n")
	s.write(t, stderr, "left over")
	s.status = -3
	turn := &fakeTurn{payload: s.payload(t)}
	err := i.Handle(t.Context(), turn, abi.KindMessage, 0)
	if want := "creature_handle: the guest returned -3 (already_exists): problem"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	want := []string{"info a", "warn problem", "warn ", "info bc", "info d", "info " + long, "info y", "info " + long, "info z"}
	if got := turn.logs[:len(want)]; !slices.Equal(got, want) {
		t.Errorf("the log has\n%.60q\nwant\n%.60q", got, want)
	}
	if last := turn.logs[len(turn.logs)-1]; last != "warn left over" {
		t.Errorf("the last line is %q", last)
	}
}

// A vector may be empty, and one write may have millions of them: each costs
// fuel.
func TestVectorsCostFuel(t *testing.T) {
	i := wasiScript(t)
	fuel := func(vectors uint64) int64 {
		s := newScript(1)
		s.call(wasiNumber(t, "fd_write"), stdout, scriptScratch, vectors, scriptScratch)
		if got := runScript(t, i, s, &fakeTurn{}); errno(got[0]) != errnoSuccess {
			t.Fatalf("a write of %d vectors answers %d", vectors, got[0])
		}
		return i.FuelUsed()
	}
	const many = 4000
	if one, all := fuel(1), fuel(1+many); all-one != many*costVector {
		t.Errorf("%d more vectors cost %d units, want %d", many, all-one, many*costVector)
	}
}

// subscription is a clock subscription of poll_oneoff.
func subscription(user uint64, clock uint32, timeout uint64, flags uint16) []byte {
	b := make([]byte, subscriptionBytes)
	binary.LittleEndian.PutUint64(b, user)
	binary.LittleEndian.PutUint32(b[subClockID:], clock)
	binary.LittleEndian.PutUint64(b[subTimeout:], timeout)
	binary.LittleEndian.PutUint16(b[subFlags:], flags)
	return b
}

func fdSubscription(user uint64, tag byte, fd uint32) []byte {
	b := make([]byte, subscriptionBytes)
	binary.LittleEndian.PutUint64(b, user)
	b[subTag] = tag
	binary.LittleEndian.PutUint32(b[subFD:], fd)
	return b
}

// pollDirectly calls poll_oneoff as a guest would and returns the events.
func pollDirectly(t *testing.T, c *call, i *Instance, subs ...[]byte) (events [][]byte) {
	t.Helper()
	mem := &i.call.memory
	const at, out, count = 0, 2048, 4000
	copy(mem.Bytes[at:], bytes.Join(subs, nil))
	if e := wasiPoll(c, []uint64{at, out, uint64(len(subs)), count}); e != errnoSuccess {
		t.Fatalf("poll_oneoff answers %d", e)
	}
	n, _ := mem.ReadUint32Le(count)
	for k := range n {
		b, _ := mem.Read(out+k*eventBytes, eventBytes)
		events = append(events, b)
	}
	return events
}

func TestPollMovesTheClock(t *testing.T) {
	i := wasiScript(t)
	c := &i.call
	c.turn = &fakeTurn{now: 1000}
	users := func(events [][]byte) (out []uint64) {
		for _, e := range events {
			out = append(out, binary.LittleEndian.Uint64(e))
		}
		return out
	}
	// The earliest clock is due; the later one and the clocks themselves wait.
	got := pollDirectly(t, c, i, subscription(1, clockMonotonic, 500, 0), subscription(2, clockMonotonic, 50, 0),
		subscription(3, clockMonotonic, 1050, absolute))
	if !slices.Equal(users(got), []uint64{2, 3}) {
		t.Errorf("ready are %v", users(got))
	}
	if now, _ := c.clock(clockMonotonic); now != 1050 {
		t.Errorf("the monotonic clock is at %d", now)
	}
	if now, _ := c.clock(clockRealtime); now != 1000 {
		t.Errorf("the real clock is at %d", now)
	}
	// A descriptor is reported immediately, and time stands still.
	got = pollDirectly(t, c, i, subscription(1, clockMonotonic, 500, 0), fdSubscription(2, pollFDWrite, stdout), fdSubscription(3, 1, 9))
	if !slices.Equal(users(got), []uint64{2, 3}) || got[0][eventErrno] != 0 || got[1][eventErrno] != byte(errnoBadf) {
		t.Errorf("ready are %v with %v", users(got), got)
	}
	// The clock neither goes back with an earlier turn nor overflows.
	c.turn = &fakeTurn{now: 10}
	if now, _ := c.clock(clockMonotonic); now != 1050 {
		t.Errorf("the monotonic clock is at %d", now)
	}
	for range 2 {
		pollDirectly(t, c, i, subscription(1, clockMonotonic, math.MaxUint64, 0))
	}
	if now, _ := c.clock(clockMonotonic); now != math.MaxInt64 {
		t.Errorf("the monotonic clock is at %d", now)
	}
	c.turn = nil
}
