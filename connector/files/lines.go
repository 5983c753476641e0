// Package files implements the sources and the sink that read and write files, and the
// reading of lines, which inputs of the command line use too.
package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// Lines reads the lines of an input. The position after a line is its offset, so that lines
// which the session has already taken are skipped. Only one reading at a time may use a
// Lines.
type Lines struct {
	Name string // of the input, for messages
	// LeaveOut leaves out lines that are too long. Otherwise such a line is an error.
	LeaveOut bool
	// Known returns the highest offset of every producer of the channel.
	Known func() (map[string]uint64, error)
	// Take takes a line without its newline. An error ends the reading.
	Take func(ctx context.Context, line []byte, producer string, offset uint64) error
	// Mark keeps an offset of a producer, without a line. It may be nil if no file is followed.
	Mark func(ctx context.Context, producer string, offset uint64) error
	// Now returns the time. The time at which a followed file is first read distinguishes it
	// from a later file with the same beginning and identity.
	Now func() time.Time
	// LeftOut reports a line that is left out because it is too long.
	LeftOut func(err error)

	born int64 // the time of the last new producer, in ns

	Read    atomic.Int64 // lines read so far
	Skipped atomic.Int64 // of these, those that were taken before
}

// Feed takes all lines of an input.
func (l *Lines) Feed(ctx context.Context, input io.Reader) error {
	known, err := l.Known()
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(input, headBytes)
	producer, seen, err := identify(r, known)
	if err != nil {
		return l.ended(ctx, err)
	}
	return l.take(ctx, r, producer, seen)
}

// take takes the lines of one file, of which seen bytes were taken before.
func (l *Lines) take(ctx context.Context, r *bufio.Reader, producer string, seen uint64) error {
	var position uint64
	for {
		line, size, err := l.readLine(r)
		position += size
		if l.LeaveOut && abi.CodeOf(err) == abi.TooLarge {
			if l.Read.Add(1); position > seen {
				l.LeftOut(err)
			}
			continue
		}
		if err != nil {
			return l.ended(ctx, err)
		}
		l.Read.Add(1)
		line, fresh := unseen(line, position, seen)
		if !fresh {
			l.Skipped.Add(1)
			continue
		}
		if err := l.Take(ctx, bytes.TrimSuffix(line, []byte("\n")), producer, position); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("line %d of %s: %w", l.Read.Load(), l.Name, err)
		}
	}
}

// unseen returns the new part of a line that ends at a position, if seen bytes of the
// input were taken before. A file may have been read while its last line was only half
// written. The rest is then a line of its own, unless only the newline was missing.
func unseen(line []byte, position, seen uint64) (rest []byte, fresh bool) {
	start := position - uint64(len(line))
	switch {
	case position <= seen:
		return nil, false
	case start >= seen:
		return line, true
	}
	rest = line[seen-start:]
	return rest, string(rest) != "\n"
}

// ended returns the error with which reading ended. The end of the file and an
// interruption are not errors.
func (l *Lines) ended(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("reading %s: %w", l.Name, err)
}

// readLine reads a line with its newline, and returns the number of its bytes. At the end
// of the input it returns no line and an error. A line that is too long is an error. With
// LeaveOut, such a line is read to its end, so that the caller can continue with the next
// one.
func (l *Lines) readLine(r *bufio.Reader) (line []byte, size uint64, err error) {
	var tooLong error
	for {
		part, err := r.ReadSlice('\n')
		size += uint64(len(part))
		if tooLong == nil {
			line = append(line, part...)
		}
		if len(line) > deploy.MaxMessage {
			line, tooLong = nil, &abi.Error{
				Code:    abi.TooLarge,
				Message: fmt.Sprintf("line %d is longer than %d bytes, the size limit of a message", l.Read.Load()+1, deploy.MaxMessage),
				Remedy:  "split it into shorter lines",
			}
			if !l.LeaveOut {
				return nil, size, tooLong
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && size > 0 {
			err = nil
		}
		if err == nil {
			err = tooLong
		}
		if err != nil {
			return nil, size, err
		}
		return line, size, nil
	}
}
