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

// interruption is the cause of a context that a signal has ended.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return fmt.Sprintf("interrupted by a signal: %v", i.signal) }

// exitInterrupted returns the exit code of a command that ended cleanly after a
// signal. It is the code that a shell shows for a process killed by that signal: 130
// for Ctrl-C, 143 for SIGTERM and 129 for SIGHUP.
func exitInterrupted(s syscall.Signal) int { return 128 + int(s) }

// interrupted returns the error of a command that ended cleanly after a signal. ctx has ended.
func interrupted(ctx context.Context) error {
	s := syscall.SIGINT
	var why *interruption
	if errors.As(context.Cause(ctx), &why) {
		s = why.signal
	}
	return &exit{code: exitInterrupted(s), shown: true}
}

// unlessInterrupted returns err, or the error of an interruption if err says no more
// than that.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && gaveUp(err) {
		return interrupted(ctx)
	}
	return err
}

// gaveUp reports whether an error says only that a context has ended. An error that
// has other causes too does not count.
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
// cause is an [interruption]. A second signal has its default effect and ends the
// process at once. A process that was started with SIGHUP ignored, for example by
// nohup, continues to ignore it.
//
// From then on a closed standard output causes a write error rather than ending the
// process, so that sessions are closed first.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return untilSignals(parent, signals...)
}

// untilSignals is [untilSignal] for other signals.
func untilSignals(parent context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(parent)
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

// interruptible reads from the file that open returns. Opening and reading may block
// forever, for example with a pipe or a terminal. Closing the result ends a read at
// once.
//
// The system call itself cannot be ended. The goroutine inside it ends with the call
// or with the process; it is the only goroutine that no other one waits for.
func interruptible(open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		file, err := open()
		if err == nil {
			// Neither side may choose its own way of copying: bytes must
			// be passed on as soon as they arrive.
			_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{file}, make([]byte, 64<<10))
			file.Close()
		}
		w.CloseWithError(err) // nil is the end of the file
	}()
	return r
}
