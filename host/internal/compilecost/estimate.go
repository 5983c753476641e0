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
	TimePerByte time.Duration // what is added to Time for every byte of code
	MaxTime     time.Duration // however much code there is
	Bytes       int64         // the most that functions need of each kind, and the machine code of all
}

// DefaultLimits returns the limits that apply where nothing else is said. SQLite
// as clang -O3 makes it and a program of 14 MB in Go need six tenths of them at most.
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

// of is the time that a module may take.
func (l Limits) of(m *wasmbin.Module) time.Duration {
	var code time.Duration
	for i := range m.Code {
		code += time.Duration(len(m.Code[i].Body))
	}
	return min(l.Time+l.TimePerByte*code, l.MaxTime)
}

// Cost is what compiling costs.
type Cost struct {
	Time  time.Duration // all functions together
	Bytes int64         // the most that functions need of each kind, and the machine code of all
	// Function is the index, imported functions counted, of the one that takes
	// most of the time.
	Function int
}

// Estimate returns the cost of a valid module. infos are what validation
// returned, also if functions were added since; they may be rewritten in the
// meantime, as long as their operand stacks grow by a few operands only. When the
// cost is above the limits the error is an *abi.Error with the code
// abi.TooLarge, and the rest of the module is not looked at.
func Estimate(m *wasmbin.Module, infos []wasmbin.FuncInfo, limits Limits) (Cost, error) {
	limits = limits.withDefaults()
	var (
		b     = newBody(m)
		cost  Cost
		worst time.Duration
		last  = limits.of(m)
		first = m.ImportedFuncs()
		code  int64 // machine code, several times: while it is put together and written out
		most  terms // of any function: what one has taken is kept for the next, by kind
	)
	for i := range m.Code {
		if !b.walk(i) {
			return cost, costly(first+i, "has more blocks, or loops within loops, than can be weighed")
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
			return cost, costly(cost.Function, "is the most costly of the functions that together take too long to compile")
		case cost.Bytes > limits.Bytes:
			return cost, costly(first+i, "is where compiling the module takes too much memory")
		}
	}
	return cost, nil
}

func costly(function int, what string) *abi.Error {
	return (&abi.Error{Code: abi.TooLarge, Op: "compile", Message: "function " + strconv.Itoa(function) + " " + what,
		Remedy: "split it, or compile it with less inlining; many branches, calls or loops across which many locals are live cost most"}).
		With("function", strconv.Itoa(function))
}

// copies is how many copies of its machine code a compilation has at its end.
const copies = 3

// terms are the quantities that grow faster than a function.
type terms struct {
	lookups    int64 // steps from block to block in search of a local
	searched   int64 // arguments that the rounds against redundant parameters look at
	arguments  int64 // arguments of all edges into joins
	dominators int64 // blocks above the edges
	bounds     int64 // known addresses at the ends of all blocks
	meetings   int64 // known addresses that are compared at joins
	live       int64 // live values at the beginnings of all blocks
	reloads    int64 // globals loaded again
	moved      int64 // operands of calls
	setup      int64 // types, globals and blocks of other functions that are gone over
	expanded   int64 // bytes that instructions take by themselves
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

// raise raises the terms that take memory to those of another function.
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
