package policy

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// The clock that limits the matching of regular expressions, and how much longer than its
// policy a match may take. When matching stops, the time of the policy is over, so that a
// stopped match never decides.
const (
	matchClock  = 10 * time.Millisecond
	matchMargin = 5 * matchClock
)

// matchingMu is held while the library's default timeout is changed, which is the only
// way to limit a pattern; see RATIONALE.md.
var matchingMu sync.Mutex

var startMatchClock = sync.OnceFunc(func() { regexp2.SetTimeoutCheckPeriod(matchClock) })

// matching calls f, which makes patterns. Matching these patterns, which the interpreter
// cannot interrupt, stops soon after the timeout of their policy.
func matching(timeout time.Duration, f func()) {
	startMatchClock()
	matchingMu.Lock()
	defer matchingMu.Unlock()
	usual := regexp2.DefaultMatchTimeout
	defer func() { regexp2.DefaultMatchTimeout = usual }()
	regexp2.DefaultMatchTimeout = min(usual, timeout+matchMargin)
	f()
}

// weigh returns how many steps a pattern has when it is compiled: counted repetitions
// multiply it. The result for an invalid pattern is arbitrary. It takes time in
// proportion to the pattern, and its only bound is maxWeight.
func weigh(pattern string) int {
	groups := []int{0} // the weight of each open group so far
	last := 0          // the weight of the last item, which a repetition would multiply
	add := func(n int) {
		last = n
		groups[len(groups)-1] = min(groups[len(groups)-1]+n, maxWeight)
	}
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
			add(1)
		case '[':
			end := classEnd(pattern[i:])
			add(1 + end/8)
			i += end
		case '(':
			groups = append(groups, 0)
		case ')':
			if n := len(groups); n > 1 {
				inside := groups[n-1]
				groups = groups[:n-1]
				add(inside + 1)
			}
		case '{':
			times, size := repetition(pattern[i:])
			if size == 0 {
				add(1)
				continue
			}
			i += size - 1
			before := last
			last = min(before*max(times, 1), maxWeight)
			groups[len(groups)-1] = min(groups[len(groups)-1]+last-before, maxWeight)
		default:
			add(1)
		}
	}
	total := 1
	for _, n := range groups {
		total = min(total+n, maxWeight)
	}
	return total
}

// classEnd returns the end of a class such as [a-z].
func classEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(s) - 1
}

// repetition reads {n}, {n,} or {n,m} at the start of s. It returns the maximum, or the
// minimum if there is none, and the size; 0 if s does not start with a repetition.
func repetition(s string) (times, size int) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return 0, 0
	}
	for bound := range strings.SplitSeq(s[1:end], ",") {
		if bound == "" {
			continue
		}
		n, err := strconv.ParseUint(bound, 10, 63)
		switch {
		case err == nil:
			times = max(times, int(min(n, maxWeight)))
		case strings.Trim(bound, "0123456789") == "":
			times = maxWeight // the number is too large
		default:
			return 0, 0
		}
	}
	return times, end + 1
}
