package deploy

import (
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// StopWhen is a condition under which the creatures of a deployment stop. It holds if all of
// what it sets holds, and it is judged for each graph by itself.
type StopWhen struct {
	Name string
	// Turns, Messages, Tokens and Money are reached when the counter is at least that high.
	// Zero is not set. See [journal.StopCounters].
	Turns, Messages, Tokens, Money int64
	// After is the time since the recipe began in the graph; zero is not set.
	After time.Duration
	// Match is true or false for the counters; nil is not set. It is a function of its
	// argument alone, and is called in the critical section of the graph.
	Match func(*journal.StopCounters) (bool, error)
}
