package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/memory"
	"github.com/tetratelabs/wazero/api"
)

// phase is what of a guest is running.
type phase uint8

const (
	phaseInstantiate phase = iota // segments are put in place; nothing of the guest runs
	phaseStart                    // the start function of the module
	phaseInitialize               // _initialize
	phaseInit                     // creature_init
	phaseHandle                   // creature_handle
	phaseStop                     // creature_stop
)

var phaseNames = [...]string{"instantiate", "start", abi.ExportInitialize, abi.ExportInit, abi.ExportHandle, abi.ExportStop}

func (p phase) String() string { return phaseNames[p] }

// call is the state of one call into a guest. An instance has one and uses it
// again for every call. It is the context.Context of the call, so that a
// hostcall finds it without a lookup and nothing is allocated.
type call struct {
	meteredCall
	memory memory.Linear
	bounds bounds

	turn  abi.Turn // nil between calls
	phase phase
	count int64 // hostcalls so far

	early     *rand.ChaCha8 // random bytes for start and _initialize; nil in other calls
	documents uint8         // awareness documents that the guest has asked for, a bit for each
	personal  bool          // the guest has asked for what not every instance of its module gets

	result  []byte // the source result
	text    string // the source error, unless turnErr
	turnErr bool   // the turn has the text of the last failed hostcall

	end   *ending // why a hostcall ended the guest
	fault any     // what a hostcall panicked with
	words string  // what the guest said of its failure

	wasi wasiState
}

var _ context.Context = (*call)(nil)

type callKey struct{}

// Deadline implements context.Context. Time is kept by look.
func (c *call) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *call) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (c *call) Err() error { return nil }

// Value implements context.Context. The caller's values are kept away from
// wazero on purpose: some of them would change how it runs a guest.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return nil
}

// callOf returns the call that a hostcall belongs to. Only a start function
// sees it wrapped.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	return ctx.Value(callKey{}).(*call)
}

// now is the time in nanoseconds since 1970. Until creature_init it stands still.
func (c *call) now() int64 {
	if c.phase < phaseInit {
		return 0
	}
	return c.turn.Now()
}

// keepResult is how much room for the source result an instance keeps between
// turns, in bytes: enough for the usual state value.
const keepResult = 16 << 10

func (c *call) begin(t abi.Turn, p phase) {
	c.turn, c.phase, c.count = t, p, 0
	c.text, c.turnErr, c.words, c.cost, c.personal = "", false, "", 0, false
	c.documents = 0
	c.result = c.result[:0]
}

// tick counts a hostcall. It answers false when the limit calls is reached, and
// ends a guest that goes on calling regardless.
func (c *call) tick() bool {
	c.count++
	if c.count <= c.bounds.calls {
		return true
	}
	if c.count/2 >= c.bounds.calls { // halved, for a limit may be as large as int64
		c.stop(&ending{limitError("", "calls",
			fmt.Sprintf("the guest made %d hostcalls; the limit calls is %d", c.count, c.bounds.calls),
			"raise the limit calls, or do less in one turn")})
	}
	return false
}

// admit decides whether a hostcall may go on to its turn.
func (c *call) admit(f *abi.Function) abi.Code {
	if !c.tick() {
		return c.refuse(abi.LimitExceeded, fmt.Sprintf("the limit calls (%d) is reached; do less in one turn", c.bounds.calls))
	}
	if f.Effect && c.phase != phaseHandle {
		return c.refuse(abi.Denied, f.Name+" has an effect, and "+c.phase.String()+" may only read; call it in "+abi.ExportHandle)
	}
	if f.Feature >= 0 && !c.turn.HasFeature(f.Feature) {
		return c.refuse(abi.Unsupported, "this host does not have "+f.Name+"; ask with feature before calling it")
	}
	return abi.OK
}

// refuse leaves the text of a failure that the host found.
func (c *call) refuse(code abi.Code, text string) abi.Code {
	c.text, c.turnErr = text, false
	return code
}

// invalid refuses an argument and answers the status for it.
func (c *call) invalid(format string, args ...any) int64 {
	return int64(c.refuse(abi.InvalidArgument, fmt.Sprintf(format, args...)).Status())
}

// status answers the code of the turn, which has the text of a failure.
func (c *call) status(code abi.Code) int64 {
	if code != abi.OK {
		c.turnErr = true
	}
	return int64(code.Status())
}

// answer passes on a number of the turn that is negative for a failure.
func (c *call) answer(n int32) int64 {
	if n < 0 {
		c.turnErr = true
	}
	return int64(n)
}

// errorText is the source error.
func (c *call) errorText() string {
	if c.turnErr {
		return c.turn.LastError()
	}
	return c.text
}

// input is view for what the guest hands over.
func (c *call) input(mem api.Memory, what string, ptr, length uint64) (b []byte, ok bool) {
	b, ok = c.view(mem, what, ptr, length)
	c.bytes(len(b))
	return b, ok
}

// view returns the guest's memory at ptr, bounds-checked, as a view that is
// valid until the guest runs again. ok is false when the range is not in
// memory; the source error says so.
func (c *call) view(mem api.Memory, what string, ptr, length uint64) (b []byte, ok bool) {
	n := int32(length)
	if n == 0 {
		return nil, true
	}
	if n < 0 {
		c.invalid("%s: a length of %d is negative", what, n)
		return nil, false
	}
	b, ok = mem.Read(uint32(ptr), uint32(n))
	if !ok {
		c.invalid("%s: %d bytes at %d lie outside of the memory, which has %d", what, n, uint32(ptr), mem.Size())
	}
	return b, ok
}

// text that a guest leaves about its own failure is kept up to this length, in
// bytes.
const maxWords = 512

// say remembers what a guest logged as an error or a warning.
func (c *call) say(text []byte) {
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	c.words = string(text)
}

// ending is what a hostcall panics with to end the guest: the only way that
// wazero has.
type ending struct{ err *abi.Error }

func (e *ending) Error() string { return e.err.Error() }

func (c *call) stop(e *ending) {
	c.end = e
	panic(e)
}

// contain notes that a hostcall panicked, with an ending or by a defect, before
// wazero makes an error of it that cannot be told from a trap.
func (c *call) contain() {
	if r := recover(); r != nil {
		c.fault = r
		panic(r)
	}
}
