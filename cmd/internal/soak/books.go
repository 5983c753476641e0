package main

import (
	"fmt"
	"sync"
)

// books records what was sent and what arrived, as seen from outside the terrarium. Its
// methods may be called from any goroutine.
type books struct {
	mu       sync.Mutex
	sent     map[string]uint64 // the last number by lane
	arrived  map[string]uint64 // by the channel it was read from and the lane it began in
	counts   map[string]int    // how often each thing was done
	problems []string
}

// maxProblems bounds what is kept of a soak that goes wrong.
const maxProblems = 100

func newBooks() *books {
	return &books{sent: map[string]uint64{}, arrived: map[string]uint64{}, counts: map[string]int{}}
}

// next returns the number of the next message of a lane, from 1.
func (b *books) next(lane string) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[lane] + 1
}

// send notes that the message of a number was accepted.
func (b *books) send(lane string, n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[lane] = n
	b.counts["messages"]++
}

// arrive notes a message that a reader of a channel got. With withoutGaps, the number has to
// be the next one.
func (b *books) arrive(channel, from string, n uint64, withoutGaps bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts["arrivals"]++
	key := channel + " from " + from
	last := b.arrived[key]
	if n <= last || withoutGaps && n != last+1 {
		b.fault("%s: number %d came after %d", key, n, last)
	}
	b.arrived[key] = max(n, last)
}

// subscriberOf is the name under which the records have what a subscriber gets of a lane.
func subscriberOf(lane string) string { return "subscriber of " + lane }

// behind returns how many messages of a lane its reader or the subscriber still has to get. The
// subscriber counts too, because what it has not read within the retention is pruned.
func (b *books) behind(lane string) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[lane] - min(b.arrived[lane+" from "+lane], b.arrived[subscriberOf(lane)+" from "+lane])
}

// did counts something that was done.
func (b *books) did(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what]++
}

// problem notes something that must not happen.
func (b *books) problem(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault(format, args...)
}

func (b *books) fault(format string, args ...any) {
	if len(b.problems) < maxProblems {
		b.problems = append(b.problems, fmt.Sprintf(format, args...))
	}
}

// balance compares what was sent with what arrived, once nothing is on its way.
func (b *books) balance() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for lane, n := range b.sent {
		if got := b.arrived[lane+" from "+lane]; got != n {
			b.fault("lane %s: %d messages were sent, and %d arrived", lane, n, got)
		}
	}
}

// done returns how often things were done, and what went wrong.
func (b *books) done() (counts map[string]int, problems []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts = map[string]int{}
	for what, n := range b.counts {
		counts[what] = n
	}
	return counts, append([]string(nil), b.problems...)
}
