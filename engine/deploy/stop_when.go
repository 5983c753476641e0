package deploy

import (
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// StopWhen is a condition under which the creatures of a deployment stop. It holds if all
// conditions that are set hold. It is judged in each graph separately.
type StopWhen struct {
	Name string
	// Turns, Messages, Tokens and Money hold when the counter has reached the value. Zero
	// means not set. See [journal.StopCounters].
	Turns, Messages, Tokens, Money int64
	// After holds when this time has passed since the recipe began in the graph; zero
	// means not set.
	After time.Duration
	// Match holds if it returns true for the counters; nil means not set. It is a
	// function of its argument alone, and is called in the critical section of the graph.
	Match func(*journal.StopCounters) (bool, error)
}
