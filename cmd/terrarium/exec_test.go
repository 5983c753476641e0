package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// TestAnErrorOfEndingOutweighsAnInterruption joins the error of a command with the error of
// ending it.
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

// TestErrorsOfApplyingHaveExitCodes distinguishes errors of a session directory, other errors,
// and interruptions by a signal.
func TestErrorsOfApplyingHaveExitCodes(t *testing.T) {
	signalled, cancel := context.WithCancelCause(t.Context())
	cancel(&interruption{syscall.SIGTERM})
	compile := func(code abi.Code, cause error) error {
		return &abi.Error{Code: code, Op: "add_creature", Err: fmt.Errorf("the module of a: %w", &abi.Error{Code: code, Op: "compile", Err: cause})}
	}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), compile(abi.Unavailable, nil), exitFailed},
		{t.Context(), &abi.Error{Code: abi.Unavailable, Op: "open"}, exitSession},
		{t.Context(), compile(abi.Stopped, context.Canceled), exitFailed},
		{signalled, compile(abi.Stopped, context.Canceled), 143},
		{signalled, compile(abi.TooLarge, nil), exitFailed},
	} {
		var e *exit
		if err := applyExit(c.ctx, c.err); !errors.As(err, &e) || e.code != c.want {
			t.Errorf("%v: %v, want the exit code %d", c.err, err, c.want)
		}
	}
}
