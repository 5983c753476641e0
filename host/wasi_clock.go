package host

import (
	"encoding/binary"
	"math"
)

// The WASI clocks provided.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// wasiState is the state of the confined WASI for an instance.
type wasiState struct {
	// monotonic is the last time of the monotonic clock, in nanoseconds. It
	// never goes back, even if the time of a later turn is earlier. Nothing
	// blocks inside a turn: sleeping advances this clock instead, so that a
	// runtime that waits for a timer makes progress, in the same way every
	// time.
	monotonic int64
	output    [2]lineBuffer // standard output and standard error
}

// clock returns the time of a clock, in nanoseconds.
func (c *call) clock(id uint32) (now int64, e errno) {
	switch id {
	case clockRealtime:
		return c.now(), errnoSuccess
	case clockMonotonic:
		c.wasi.monotonic = max(c.wasi.monotonic, c.now(), 1) // Go's runtime refuses a clock at zero
		return c.wasi.monotonic, errnoSuccess
	}
	return 0, errnoInval
}

func saturatingAdd(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func wasiClockTime(c *call, p []uint64) errno {
	now, e := c.clock(uint32(p[0]))
	if e != errnoSuccess {
		return e
	}
	return putAll(c.memory.WriteUint64Le(uint32(p[2]), uint64(now)))
}

func wasiClockRes(c *call, p []uint64) errno {
	if id := uint32(p[0]); id != clockRealtime && id != clockMonotonic {
		return errnoInval
	}
	return putAll(c.memory.WriteUint64Le(uint32(p[1]), 1))
}

// Layout of the data that poll_oneoff reads and writes, in bytes.
const (
	subscriptionBytes = 48
	eventBytes        = 32
	// A subscription: user data, tag, then by tag.
	subTag      = 8
	subClockID  = 16
	subTimeout  = 24
	subFlags    = 40
	subFD       = 16
	absolute    = 1 // a flag of a clock subscription
	eventErrno  = 8
	eventType   = 10
	pollClock   = 0
	pollFDWrite = 2
)

// subscriptionUnits is the cost of reading a subscription, in fuel. Each is
// read twice.
const subscriptionUnits = 48

// wasiPoll is poll_oneoff. It returns at once: with the events that are ready,
// or else with the clocks due next, after advancing the monotonic clock to
// that time.
func wasiPoll(c *call, p []uint64) errno {
	count := uint32(p[2])
	if count == 0 {
		return errnoInval
	}
	if uint64(count)*subscriptionBytes > uint64(c.memory.Size()) {
		return errnoFault
	}
	subs, ok := c.memory.Read(uint32(p[0]), count*subscriptionBytes)
	if !ok {
		return errnoFault
	}
	events, ok := c.memory.Read(uint32(p[1]), count*eventBytes)
	if !ok {
		return errnoFault
	}
	wait := c.shortestWait(subs)
	if now, _ := c.clock(clockMonotonic); wait > 0 {
		c.wasi.monotonic = saturatingAdd(now, wait)
	}
	var written uint32
	for ; len(subs) > 0; subs = subs[subscriptionBytes:] {
		c.spend(subscriptionUnits)
		e, ready := c.pollOne(subs, wait)
		if !ready {
			continue
		}
		event := events[written*eventBytes:][:eventBytes]
		// The two ranges may overlap, so read before writing.
		tag, user := subs[subTag], binary.LittleEndian.Uint64(subs)
		clear(event)
		binary.LittleEndian.PutUint64(event, user)
		binary.LittleEndian.PutUint16(event[eventErrno:], uint16(e))
		event[eventType] = tag
		written++
	}
	return putAll(c.memory.WriteUint32Le(uint32(p[3]), written))
}

// shortestWait returns the time until the first subscription is ready, in
// nanoseconds.
func (c *call) shortestWait(subs []byte) int64 {
	wait := int64(math.MaxInt64)
	for ; len(subs) > 0; subs = subs[subscriptionBytes:] {
		c.spend(subscriptionUnits) // charged at once, because there may be many
		if subs[subTag] != pollClock {
			return 0 // a descriptor is ready or wrong; both are reported at once
		}
		wait = min(wait, c.remaining(subs))
	}
	return wait
}

// remaining returns the time until a clock subscription is due.
func (c *call) remaining(sub []byte) int64 {
	timeout := int64(min(binary.LittleEndian.Uint64(sub[subTimeout:]), math.MaxInt64))
	if binary.LittleEndian.Uint16(sub[subFlags:])&absolute == 0 {
		return timeout
	}
	now, _ := c.clock(binary.LittleEndian.Uint32(sub[subClockID:]))
	return max(0, timeout-now)
}

// pollOne reports whether a subscription is ready after the guest has waited.
func (c *call) pollOne(sub []byte, waited int64) (e errno, ready bool) {
	switch sub[subTag] {
	case pollClock:
		absoluteTime := binary.LittleEndian.Uint16(sub[subFlags:])&absolute != 0
		if absoluteTime && binary.LittleEndian.Uint32(sub[subClockID:]) == clockMonotonic {
			return errnoSuccess, c.remaining(sub) == 0 // the clock has already advanced
		}
		return errnoSuccess, c.remaining(sub) <= waited
	case pollFDWrite:
		if fd := binary.LittleEndian.Uint32(sub[subFD:]); fd == stdout || fd == stderr {
			return errnoSuccess, true
		}
	}
	return errnoBadf, true
}
