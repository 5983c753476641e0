package compilecost

import (
	"math"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// Limits are the most that compiling a module may cost. A field that is 0 or less
// means its default.
type Limits struct {
	Time        time.Duration // of all functions together, on one core
	TimePerByte time.Duration // added to Time for every byte of code
	MaxTime     time.Duration // the maximum, regardless of code size
	Bytes       int64         // the functions' maximum of each kind, and all machine code
}

// DefaultLimits returns the default limits. SQLite compiled with clang -O3 and
// a Go program of 14 MB need at most six tenths of them.
func DefaultLimits() Limits {
	return Limits{Time: 8 * time.Second, TimePerByte: 1500 * time.Nanosecond, MaxTime: time.Minute, Bytes: 512 << 20}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.Time <= 0 {
		l.Time = d.Time
	}
	if l.TimePerByte <= 0 {
		l.TimePerByte = d.TimePerByte
	}
	if l.MaxTime <= 0 {
		l.MaxTime = max(d.MaxTime, l.Time)
	}
	if l.Bytes <= 0 {
		l.Bytes = d.Bytes
	}
	return l
}

// of returns the time that a module may take.
func (l Limits) of(m *wasmbin.Module) time.Duration {
	var code time.Duration
	for i := range m.Code {
		code += time.Duration(len(m.Code[i].Body))
	}
	return min(l.Time+l.TimePerByte*code, l.MaxTime)
}

// For returns the time and the bytes that compiling a module may take.
func (l Limits) For(m *wasmbin.Module) (time.Duration, int64) {
	l = l.withDefaults()
	return l.of(m), l.Bytes
}

// Cost is the estimated cost of a compilation.
type Cost struct {
	Time  time.Duration // all functions together
	Bytes int64         // the functions' maximum of each kind, and all machine code
	// Function is the index, imported functions included, of the function that
	// takes the most time.
	Function int
}

// Estimate returns the cost of a valid module. infos is the result of
// validation, even if functions were added since; functions may have been
// rewritten meanwhile, as long as their operand stacks grew by only a few
// operands. If the cost exceeds the limits, the error is an *abi.Error with
// the code abi.TooLarge, and the rest of the module is not examined.
func Estimate(m *wasmbin.Module, infos []wasmbin.FuncInfo, limits Limits) (Cost, error) {
	limits = limits.withDefaults()
	var (
		b     = newBody(m)
		cost  Cost
		worst time.Duration
		last  = limits.of(m)
		first = m.ImportedFuncs()
		code  int64 // machine code, several times: while it is assembled and written out
		most  terms // the maximum over functions by kind: memory is kept for the next function
	)
	for i := range m.Code {
		if !b.walk(i) {
			return cost, costly(first+i, "has more blocks, or more deeply nested loops, than the estimate allows")
		}
		var height int64
		if i < len(infos) {
			height = int64(infos[i].StackHeight)
		}
		t := b.terms(height)
		took := t.time()
		cost.Time = saturate(cost.Time, took)
		code += copies * t.code
		most.raise(&t)
		cost.Bytes = most.bytes() + code
		if took > worst {
			worst, cost.Function = took, first+i
		}
		switch {
		case cost.Time > last:
			return cost, costly(cost.Function, "is the most expensive of the functions that together take too long to compile")
		case cost.Bytes > limits.Bytes:
			return cost, costly(first+i, "is where compiling the module takes too much memory")
		}
	}
	return cost, nil
}

func costly(function int, what string) *abi.Error {
	return (&abi.Error{Code: abi.TooLarge, Op: "compile", Message: "function " + strconv.Itoa(function) + " " + what,
		Remedy: "split it, or compile it with less inlining; a function is most expensive if it has many branches, calls or loops across which many locals are live"}).
		With("function", strconv.Itoa(function))
}

// copies is how many copies of the machine code a compilation holds at its
// end.
const copies = 3

// terms holds the quantities that grow faster than the size of a function.
type terms struct {
	lookups    int64 // steps from block to block in search of a local
	searched   int64 // arguments read by the rounds that remove redundant parameters
	arguments  int64 // arguments of all edges into joins
	dominators int64 // blocks above the edges
	bounds     int64 // known addresses at the ends of all blocks
	meetings   int64 // known addresses compared at joins
	live       int64 // live values at the beginnings of all blocks
	reloads    int64 // globals loaded again
	moved      int64 // operands of calls
	setup      int64 // types, globals and blocks of other functions iterated over
	expanded   int64 // bytes that the instructions take
	code       int64 // bytes of machine code
}

// The prices were measured with wazero 1.12 on amd64 and rounded up.
func (t *terms) time() time.Duration {
	ns := nsPerByte*f(t.expanded) + nsPerCode*f(t.code) + 8*f(t.lookups) + 1.2*f(t.searched) + 1500*f(t.arguments) + 10*f(t.dominators) + 70*f(t.bounds) +
		4*f(t.meetings) + 25*f(t.live) + 400*f(t.reloads) + 450*f(t.moved) + 40*f(t.setup) + nsPerFunction
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

func (t *terms) bytes() int64 {
	b := f(t.expanded) + 400*f(t.arguments) + 110*f(t.bounds) + 16*f(t.live) + 180*f(t.reloads) + 1400*f(t.moved)
	if b >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(b)
}

// raise raises each term that takes memory to at least that of another
// function.
func (t *terms) raise(o *terms) {
	t.expanded, t.arguments, t.bounds = max(t.expanded, o.expanded), max(t.arguments, o.arguments), max(t.bounds, o.bounds)
	t.live, t.reloads, t.moved = max(t.live, o.live), max(t.reloads, o.reloads), max(t.moved, o.moved)
}

func f(n int64) float64 { return float64(n) }

func saturate(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
