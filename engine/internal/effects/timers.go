package effects

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Timer is a timer that the turn sets or cancels.
type Timer struct {
	Name    string
	Delay   time.Duration
	Period  time.Duration
	Payload []byte
	Cancel  bool
}

// TimerSet implements [abi.Turn], as far as the timers that are set are known.
func (t *Own) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	limits := t.Limits
	switch {
	case int64(len(name)) > limits.StateKey:
		return t.Fail(abi.TooLarge, "use a shorter name", "the name of the timer has %d bytes; the limit state_key is %d", len(name), limits.StateKey)
	case len(name) == 0 || !utf8.Valid(name) || slices.Contains(name, 0):
		return t.Fail(abi.InvalidArgument, "use another name", "the name of a timer is UTF-8 without NUL and not empty")
	case delay < 0 || period < 0:
		return t.Fail(abi.InvalidArgument, "use 0 or more", "a timer's delay and period are not negative")
	case int64(len(payload)) > limits.Message:
		return t.Fail(abi.TooLarge, "keep it in the state", "the payload has %d bytes; the limit message is %d", len(payload), limits.Message)
	}
	return t.putTimer(Timer{Name: string(name), Delay: delay, Period: period, Payload: slices.Clone(payload)})
}

// TimerCancel implements [abi.Turn], as far as the timers that are set are known.
func (t *Own) TimerCancel(name []byte) (existed bool, code abi.Code) {
	if code := t.Effect(); code != abi.OK {
		return false, code
	}
	if int64(len(name)) > t.Limits.StateKey {
		return false, abi.OK
	}
	if existed, _ = t.hasTimer(string(name)); !existed {
		return false, abi.OK
	}
	code = t.putTimer(Timer{Name: string(name), Cancel: true})
	return code == abi.OK, code
}

// putTimer replaces what the turn has done to a timer before.
func (t *Own) putTimer(x Timer) abi.Code {
	limits := t.Limits
	at, again := slices.BinarySearchFunc(t.Timers, x.Name, func(x Timer, name string) int { return cmp.Compare(x.Name, name) })
	set, others := t.hasTimer(x.Name)
	held := others.bytes + int64(len(x.Name)+len(x.Payload))
	switch {
	case x.Cancel && again && !t.persists(x.Name):
		t.Timers = slices.Delete(t.Timers, at, at+1) // as if it had never been set
		return abi.OK
	case x.Cancel:
	case !set && others.count >= limits.Timers:
		return t.OverLimit("timers", int64(limits.Timers))
	case held > limits.TimerBytes:
		return t.OverLimit("timer_bytes", limits.TimerBytes)
	}
	if again {
		t.Timers[at] = x
	} else {
		t.Timers = slices.Insert(t.Timers, at, x)
	}
	return abi.OK
}

// KnowTimers sets which timers were set when the turn first used one, with the bytes of
// each. Timers may fire meanwhile, but the turn always sees the same ones.
func (t *Own) KnowTimers(before map[string]int) {
	t.before = before
	for _, size := range before {
		t.beforeBytes += int64(size)
	}
}

// KnowsTimers reports whether KnowTimers was called.
func (t *Own) KnowsTimers() bool { return t.before != nil }

// persists reports whether a timer was set before the turn.
func (t *Own) persists(name string) bool {
	_, ok := t.before[name]
	return ok
}

// heldTimers are timers that are set.
type heldTimers struct {
	count int
	bytes int64 // of their names and payloads
}

// hasTimer returns whether a timer is set, and the total of the others, as the turn sees
// them.
func (t *Own) hasTimer(name string) (set bool, others heldTimers) {
	before := t.before
	others = heldTimers{len(before), t.beforeBytes}
	leave := func(other string) (was bool) {
		size, was := before[other]
		if was {
			others.count--
			others.bytes -= int64(size)
		}
		return was
	}
	changed := false
	for i := range t.Timers {
		x := &t.Timers[i]
		leave(x.Name)
		switch {
		case x.Name == name:
			set, changed = !x.Cancel, true
		case !x.Cancel:
			others.count++
			others.bytes += int64(len(x.Name) + len(x.Payload))
		}
	}
	if !changed {
		set = leave(name)
	}
	return set, others
}

// Noted is the timer as logs note it.
func (x *Timer) Noted() journal.NotedTimer {
	return journal.NotedTimer{Name: x.Name, Delay: int64(x.Delay), Period: int64(x.Period), Payload: x.Payload, Cancelled: x.Cancel}
}
