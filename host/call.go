package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/memory"
)

// phase says which part of a guest is running.
type phase uint8

const (
	phaseInstantiate phase = iota // segments are put in place; no guest code runs
	phaseStart                    // the start function of the module
	phaseInitialize               // _initialize
	phaseInit                     // creature_init
	phaseHandle                   // creature_handle
	phaseStop                     // creature_stop
)

var phaseNames = [...]string{"instantiate", "start", abi.ExportInitialize, abi.ExportInit, abi.ExportHandle, abi.ExportStop}

func (p phase) String() string { return phaseNames[p] }

// call is the state of one call into a guest. An instance reuses one for all
// its calls. It is the context.Context of the call, so that a hostcall finds
// it without a lookup or an allocation.
type call struct {
	meteredCall
	memory memory.Linear
	bounds bounds

	turn  abi.Turn // nil between calls
	phase phase
	count int64 // hostcalls so far

	early     *rand.ChaCha8 // random bytes for start and _initialize; nil in other calls
	documents uint8         // awareness documents that the guest has read, one bit each
	personal  bool          // the guest has used something that differs between instances of its module

	result   []byte   // the source result
	text     string   // the source error, unless turnErr
	turnErr  bool     // the turn holds the text of the last failed hostcall
	calling  string   // the present hostcall, or the last
	refusing string   // the last hostcall that failed; empty if none has
	code     abi.Code // with which it failed

	end   *ending // set when a hostcall ended the guest
	fault any     // the value that a hostcall panicked with
	words string  // the guest's own text about its failure

	wasi wasiState
}

var _ context.Context = (*call)(nil)

type callKey struct{}

// Deadline implements context.Context. look enforces the deadline.
func (c *call) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *call) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (c *call) Err() error { return nil }

// Value implements context.Context. It hides the caller's values from wazero
// on purpose: some of them would change how it runs a guest.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return nil
}

// callOf returns the call that a hostcall belongs to. Only in a start function
// is it wrapped.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	return ctx.Value(callKey{}).(*call)
}

// now returns the time in nanoseconds since 1970. Before creature_init it
// returns 0.
func (c *call) now() int64 {
	if c.phase < phaseInit {
		return 0
	}
	return c.turn.Now()
}

// keepResult is the size of the buffer for the source result that an instance
// keeps between turns, in bytes: enough for the usual state value.
const keepResult = 16 << 10

func (c *call) begin(t abi.Turn, p phase) {
	c.turn, c.phase, c.count = t, p, 0
	c.text, c.turnErr, c.refusing, c.words, c.cost, c.personal = "", false, "", "", 0, false
	c.documents = 0
	c.result = c.result[:0]
}

// tick counts a hostcall. It returns false if the limit calls is reached, and
// ends a guest that continues to call.
func (c *call) tick() bool {
	c.count++
	if c.count <= c.bounds.calls {
		return true
	}
	if c.count/2 >= c.bounds.calls { // halved, because a limit may be as large as int64
		c.stop(&ending{limitError("", "calls",
			fmt.Sprintf("the guest made %d hostcalls; the limit calls is %d", c.count, c.bounds.calls),
			"raise the limit calls, or do less in one turn")})
	}
	return false
}

// admit decides whether a hostcall may proceed to its turn.
func (c *call) admit(f *abi.Function) abi.Code {
	if !c.tick() {
		return c.refuse(abi.LimitExceeded, fmt.Sprintf("the limit calls (%d) is reached; do less in one turn", c.bounds.calls))
	}
	if f.Effect && c.phase != phaseHandle {
		return c.refuse(abi.Denied, f.Name+" has an effect, and "+c.phase.String()+" may only read; call it in "+abi.ExportHandle)
	}
	if f.Feature >= 0 && !c.turn.HasFeature(f.Feature) {
		return c.refuse(abi.Unsupported, "this host does not have "+f.Name+"; check with feature before calling it")
	}
	return abi.OK
}

// refuse stores the text of a failure detected by the host.
func (c *call) refuse(code abi.Code, text string) abi.Code {
	c.text, c.turnErr = text, false
	c.refusing, c.code = c.calling, code
	return code
}

// invalid refuses an argument and returns the status for it.
func (c *call) invalid(format string, args ...any) int64 {
	return int64(c.refuse(abi.InvalidArgument, fmt.Sprintf(format, args...)).Status())
}

// status converts a code of the turn, which holds the text of a failure.
func (c *call) status(code abi.Code) int64 {
	if code != abi.OK {
		c.turnErr, c.refusing, c.code = true, c.calling, code
	}
	return int64(code.Status())
}

// answer converts a result of the turn that is negative for a failure.
func (c *call) answer(n int32) int64 {
	if n < 0 {
		c.turnErr, c.refusing, c.code = true, c.calling, abi.CodeOfStatus(n)
	}
	return int64(n)
}

// errorText returns the source error.
func (c *call) errorText() string {
	if c.turnErr {
		return c.turn.LastError()
	}
	return c.text
}

// ownSource returns a source that the host keeps itself.
func (c *call) ownSource(s abi.Source) (content string, own bool) {
	switch {
	case s == abi.SourceError:
		return c.errorText(), true
	case s == abi.SourceFailure && c.refusing != "":
		return c.refusing + ": " + c.errorText() + " (" + c.code.String() + ")", true
	}
	return "", s == abi.SourceFailure
}

// input is view for data that the guest passes to the host.
func (c *call) input(what string, ptr, length uint64) (b []byte, ok bool) {
	b, ok = c.view(what, ptr, length)
	c.bytes(len(b))
	return b, ok
}

// view returns the guest's memory at ptr, bounds-checked, as a view that is
// valid until the guest runs again. ok is false if the range is not in memory;
// the source error then names the range.
func (c *call) view(what string, ptr, length uint64) (b []byte, ok bool) {
	n := int32(length)
	if n == 0 {
		return nil, true
	}
	if n < 0 {
		c.invalid("%s: a length of %d is negative", what, n)
		return nil, false
	}
	b, ok = c.memory.Read(uint32(ptr), uint32(n))
	if !ok {
		c.invalid("%s: %d bytes at %d lie outside the memory, which has %d", what, n, uint32(ptr), c.memory.Size())
	}
	return b, ok
}

// maxWords is how much of a guest's text about its own failure is kept, in
// bytes.
const maxWords = 512

// say keeps text that a guest logged as an error or a warning.
func (c *call) say(text []byte) {
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	c.words = string(text)
}

// ending is the value that a hostcall panics with to end the guest: wazero has
// no other way.
type ending struct{ err *abi.Error }

func (e *ending) Error() string { return e.err.Error() }

func (c *call) stop(e *ending) {
	c.end = e
	panic(e)
}

// contain records that a hostcall panicked, with an ending or by a defect,
// before wazero turns the panic into an error that looks like a trap.
func (c *call) contain() {
	if r := recover(); r != nil {
		c.fault = r
		panic(r)
	}
}
