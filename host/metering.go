package host

import (
	"context"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
)

// A guest gets its fuel in slices. Between two slices Go code runs, so that
// the garbage collector, the deadline and a caller that cancels wait no longer
// than one slice. How long a slice takes depends on the guest's instructions:
// a store to an untouched page of memory takes a thousand times as long as one
// to the cache. So slices grow and shrink until each takes about sliceTime.
// The fuel count does not depend on them.
const (
	firstSlice    = 4_000 // small, because its time is not measured
	smallestSlice = 1_000
	largestSlice  = 4 * meter.Slice
	sliceTime     = 50 * time.Microsecond
)

// mostOwed is how much of the cost of hostcalls may be charged later.
const mostOwed = meter.Slice

// The cost of hostcalls, in fuel. They run in Go, where the guest's counting
// does not reach, so they are charged afterwards.
const (
	costHostcall = 250 // leaving the guest and returning, and the usual work
	bytesPerUnit = 8   // bytes copied or read
	randomUnits  = 2   // for a random byte
	costVector   = 8   // each vector of a write; there may be any number, and they may be empty
)

// meteredCall meters the calls of one instance. An instance makes one call at
// a time.
type meteredCall struct {
	budget meter.Budget
	fuel   counter // left of the slice; the guest counts it down
	depth  counter // bytes that frames may still take
	cost   int64   // of the running hostcall, beyond costHostcall
	owed   int64   // for hostcalls, not yet charged to fuel

	caller context.Context // of the running call; nil between calls
	since  time.Time       // the end of the first slice; zero before
	looked time.Time       // the end of the last one
}

// bind finds the globals in which the instrumented module counts.
func (m *meteredCall) bind(g guest, b *bounds) {
	m.fuel, m.depth = g.counter(meter.ExportFuel), g.counter(meter.ExportDepth)
	if table := g.counter(meter.ExportTable); table != nil {
		table.Set(uint64(b.tableGrowth))
	}
	m.budget = meter.Budget{Limit: b.fuel, Slice: firstSlice}
}

// begin grants the guest fuel for a call, or for several in a row.
func (m *meteredCall) begin(ctx context.Context, b *bounds) {
	m.caller, m.since, m.owed = ctx, time.Time{}, 0
	m.budget.Slice = firstSlice
	m.fuel.Set(uint64(m.budget.Begin()))
	m.depth.Set(uint64(b.depth))
}

// used returns the fuel that the last call used.
func (m *meteredCall) used() int64 {
	return min(m.charged(), m.budget.Limit)
}

// charged returns the same as used, but more if the limit was exceeded.
func (m *meteredCall) charged() int64 {
	if m.fuel == nil {
		return 0
	}
	return m.budget.Used(int64(m.fuel.Get()) - m.owed)
}

// charge deducts available fuel from a guest that is not running.
func (m *meteredCall) charge(units int64) {
	fuel := int64(m.fuel.Get()) - units
	if fuel < 0 {
		fuel, _ = m.budget.More(fuel)
	}
	m.fuel.Set(uint64(fuel))
}

// look ends a guest that has run out of time, or whose caller has cancelled.
// Time counts from the end of the first slice: reading the clock at the start
// would cost a short turn, and most are short, more than counting does.
func (c *call) look() {
	if err := c.caller.Err(); err != nil {
		c.stop(&ending{interrupted("", err)})
	}
	now := time.Now()
	switch {
	case c.since.IsZero():
		c.since = now
	case now.Sub(c.since)/c.deadlines() >= c.bounds.deadline:
		message, remedy := "the guest ran longer than the limit deadline, %v", "raise the limit deadline, or do less in one turn"
		if c.phase < phaseHandle {
			message, remedy = fmt.Sprintf("the guest took more than %d times the limit deadline, %%v, to start", startDeadlines), "raise the limit deadline, or do less at the start"
		}
		e := limitError("", "deadline", fmt.Sprintf(message, c.bounds.deadline), remedy)
		e.Code = abi.Deadline
		c.stop(&ending{e})
	default:
		c.budget.Slice = nextSlice(c.budget.Slice, now.Sub(c.looked))
	}
	c.looked = now
}

// deadlines is how many times the deadline the current call may take.
func (c *call) deadlines() time.Duration {
	if c.phase < phaseHandle {
		return startDeadlines
	}
	return 1
}

// nextSlice returns the size of the next slice, given how long the last one
// took.
func nextSlice(slice int64, took time.Duration) int64 {
	switch {
	case took > 2*sliceTime:
		return max(smallestSlice, slice/min(16, int64(took/sliceTime)))
	case took < sliceTime/2:
		return min(largestSlice, 2*slice)
	}
	return slice
}

// goOn returns the next slice for a guest that has used up its last one, or
// ends the guest.
func (c *call) goOn(fuel int64) int64 {
	c.look()
	more, ok := c.budget.More(fuel)
	if !ok {
		c.stop(c.outOfFuel())
	}
	return more
}

func (c *call) outOfFuel() *ending {
	e := limitError("", "fuel", fmt.Sprintf("the guest used up the limit fuel, %d units", c.bounds.fuel),
		"raise the limit fuel, or do less in one turn")
	e.Code = abi.OutOfFuel
	return &ending{e}
}

// overspent reports whether a finished call exceeded its fuel after the last
// check. Without it, detection would depend on the size of the slices.
func (c *call) overspent() bool { return c.end == nil && c.charged() > c.budget.Limit }

// spend charges the guest for work of the host. The debt is deducted when the
// fuel is checked anyway, or when it reaches the size of a slice.
func (c *call) spend(units int64) {
	if c.owed += units; c.owed < mostOwed {
		return
	}
	fuel := int64(c.fuel.Get()) - c.owed
	c.owed = 0
	c.fuel.Set(uint64(fuel))
	if fuel < 0 {
		c.fuel.Set(uint64(c.goOn(fuel)))
	}
}

// settle charges the guest for the hostcall that has just finished.
func (c *call) settle() {
	c.spend(costHostcall + c.cost)
	c.cost = 0
}

// bytes records that the host copies or reads n bytes for the guest.
func (c *call) bytes(n int) { c.cost += int64(n) / bytesPerUnit }

// meterFunctions returns the function that an instrumented guest calls when its slice is
// used up or its calls nest too deeply.
func meterFunctions() map[string]importable {
	return map[string]importable{meter.ImportPause: {sig("II:I"), pause}}
}

// pause has the parameters fuel and depth, and returns the fuel.
func pause(c *call, stack []uint64) {
	defer c.contain()
	fuel, depth := int64(stack[0])-c.owed, int64(stack[1])
	c.owed = 0
	c.fuel.Set(uint64(fuel)) // so that used is right if the guest ends here
	if depth < 0 && c.bounds.depth < c.bounds.stack {
		c.stop(&ending{&abi.Error{
			Code: abi.Trapped, Message: "the guest trapped: stack overflow",
			Remedy: "recurse less deeply, or run the module without its translation to Go, whose stack is smaller than the limit stack",
		}})
	}
	if depth < 0 {
		c.stop(&ending{limitError("", "stack", fmt.Sprintf("the guest's calls nest beyond the limit stack, %d bytes", c.bounds.stack),
			"raise the limit stack, or recurse less deeply")})
	}
	if fuel < 0 {
		fuel = c.goOn(fuel)
	}
	stack[0] = uint64(fuel)
}
