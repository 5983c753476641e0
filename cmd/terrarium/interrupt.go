package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// interruption is why a context has ended that a signal ended.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return fmt.Sprintf("interrupted by a signal: %v", i.signal) }

// exitInterrupted is the exit code of a command that a signal has ended cleanly: what a
// shell shows for a process that died of that signal, so 130 after Ctrl-C, 143 after
// SIGTERM and 129 after SIGHUP.
func exitInterrupted(s syscall.Signal) int { return 128 + int(s) }

// interrupted is what a command answers that a signal has ended cleanly. ctx has ended.
func interrupted(ctx context.Context) error {
	s := syscall.SIGINT
	var why *interruption
	if errors.As(context.Cause(ctx), &why) {
		s = why.signal
	}
	return &exit{code: exitInterrupted(s), shown: true}
}

// unlessInterrupted answers an error, or that a signal has ended the command if the
// error says no more than that.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && gaveUp(err) {
		return interrupted(ctx)
	}
	return err
}

// gaveUp reports whether an error says nothing but that a context had ended, wherever
// that was noticed. Anything else that went wrong at the same time counts as itself.
func gaveUp(err error) bool {
	for err != nil {
		if err == context.Canceled {
			return true
		}
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !gaveUp(err) })
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return false
		}
	}
	return false
}

// untilSignal returns a context that ends with the first SIGINT, SIGTERM or SIGHUP; its
// cause is an [interruption]. The second one finds the signals as they were, and ends
// the process at once. A process that was started to survive its terminal, by nohup for
// example, goes on ignoring SIGHUP.
//
// A closed standard output is from then on an error of writing rather than the
// end of the process, so that sessions are closed first.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(parent)
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, signals...)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer signal.Stop(arrived)
		select {
		case s := <-arrived:
			cancel(&interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-watched
	}
}

// interruptible reads from what open gives, a pipe or a terminal for example,
// whose reads and whose very opening may block for ever. Closing it ends a
// read at once.
//
// The system call itself cannot be ended. The goroutine that is inside it ends
// with it, or with the process: it is the one that nobody waits for.
func interruptible(open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		file, err := open()
		if err == nil {
			// Neither side may choose its own way of copying: what has
			// arrived is handed on at once.
			_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{file}, make([]byte, headBytes))
			file.Close()
		}
		w.CloseWithError(err) // nil is the end of the file
	}()
	return r
}
