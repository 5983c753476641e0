package main

import (
	"errors"
	"testing"
)

// TestAnErrorOfEndingOutweighsAnInterruption joins how a command went and how it ended.
func TestAnErrorOfEndingOutweighsAnInterruption(t *testing.T) {
	interruption := &exit{code: exitInterrupted(15), shown: true}
	failure, left := failWith(exitDeadLetters, errors.New("letters")), failWith(exitLeftOpen, errors.New("left"))
	for _, c := range []struct {
		err, ending error
		want        int
	}{
		{nil, left, exitLeftOpen},
		{interruption, left, exitLeftOpen},
		{interruption, nil, 143},
		{failure, left, exitDeadLetters},
		{failure, nil, exitDeadLetters},
	} {
		var e *exit
		if err := besides(c.err, c.ending); !errors.As(err, &e) || e.code != c.want {
			t.Errorf("%v and %v: %v, want the exit code %d", c.err, c.ending, err, c.want)
		}
	}
	if err := besides(nil, nil); err != nil {
		t.Errorf("nothing and nothing is %v", err)
	}
}
