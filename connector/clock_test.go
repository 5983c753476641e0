package connector_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector"
)

// settable is a clock whose timers the test fires.
type settable struct {
	now    time.Time
	timers chan chan time.Time
}

func (c *settable) Now() time.Time { return c.now }

func (c *settable) Timer(time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time)
	c.timers <- fired
	return fired, func() {}
}

// fire sets the clock at the next timer, and lets the timer fire.
func (c *settable) fire(at time.Time) {
	fired := <-c.timers
	c.now = at
	fired <- at
}

// TestUntilNoticesAClockThatIsSetBack waits for a time a year ahead, and sets the clock.
func TestUntilNoticesAClockThatIsSetBack(t *testing.T) {
	start := time.Date(2027, 3, 2, 10, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]time.Time{
		"back":    {start.Add(time.Minute), start.AddDate(-1, 0, 0)},
		"forward": {start.Add(time.Minute), start.AddDate(2, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			c := &settable{start, make(chan chan time.Time)}
			ended := make(chan error, 1)
			go func() { ended <- connector.Steps{Clock: c}.Until(t.Context(), start.AddDate(1, 0, 0)) }()
			for _, at := range steps {
				c.fire(at)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &settable{start, make(chan chan time.Time)}
	ended := make(chan error, 1)
	go func() { ended <- connector.Steps{Clock: c}.Until(ctx, start.AddDate(1, 0, 0)) }()
	<-c.timers
	cancel(over)
	if err := <-ended; !errors.Is(err, over) {
		t.Errorf("when the context ends: %v", err)
	}
}
