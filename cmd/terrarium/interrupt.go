package main

import (
	"context"
	"io"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGINT or SIGTERM.
// The second one finds the signals as they were, and ends the process at once.
//
// A closed standard output is from then on an error of writing rather than the
// end of the process, so that sessions are closed first.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
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
