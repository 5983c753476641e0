package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// input is one --input flag: lines of a file that are sent to a channel.
type input struct {
	channel string
	name    string // the file's name, for messages
	file    io.ReadCloser
	info    os.FileInfo // nil for standard input
	grows   bool        // with --follow, and a regular file
	once    sync.Once   // closes file

	lines   atomic.Int64 // read so far
	denied  atomic.Int64 // of these, denied by policies
	skipped atomic.Int64 // of these, already taken in by an earlier run
}

// openInputs opens all inputs, so that a missing file is found before anything
// starts. With follow, regular files are followed.
func openInputs(specs []string, s streams, follow bool) (out []*input, err error) {
	defer func() {
		if err != nil {
			closeInputs(out)
		}
	}()
	for _, spec := range specs {
		in, err := openInput(spec, s)
		if err != nil {
			return out, err
		}
		in.grows = follow && in.info != nil && in.info.Mode().IsRegular()
		for _, other := range out {
			if in.info == nil && other.info == nil {
				return append(out, in), usage("--input %s: standard input can be read only once", spec)
			}
			if in.channel == other.channel && os.SameFile(in.info, other.info) {
				return append(out, in), usage("--input %s: this file is already an input of this channel", spec)
			}
		}
		out = append(out, in)
	}
	return out, nil
}

func openInput(spec string, s streams) (*input, error) {
	channel, name, _ := strings.Cut(spec, "=")
	if name == "-" {
		file := interruptible(func() (io.ReadCloser, error) { return s.in, nil })
		return &input{channel: channel, name: "standard input", file: file}, nil
	}
	in := &input{channel: channel, name: name}
	info, err := os.Stat(name)
	if err != nil {
		return nil, usage("--input %s: %w; name a file that exists, or - for standard input", spec, err)
	}
	in.info = info
	switch {
	case info.IsDir():
		return nil, usage("--input %s: this is a directory; name a file", spec)
	case info.Mode().IsRegular():
		in.file, err = os.Open(name)
	default:
		in.file = interruptible(func() (io.ReadCloser, error) { return os.Open(name) })
	}
	if err != nil {
		return nil, usage("--input %s: %w", spec, err)
	}
	return in, nil
}

func closeInputs(list []*input) {
	for _, in := range list {
		in.once.Do(func() { in.file.Close() })
	}
}

// feed sends each line to the channel. The position after the line is the producer's
// offset, so lines that the session has already taken in are skipped.
func (in *input) feed(ctx context.Context, x *running) error {
	channel, err := x.channel(in.channel)
	if err != nil {
		return err
	}
	defer in.tellAllDenied(x.report)
	if in.grows {
		return in.follow(ctx, x, channel)
	}
	known, err := x.t.Producers(channel)
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(in.file, headBytes)
	producer, seen, err := identify(r, known)
	if err != nil {
		return in.ended(ctx, err)
	}
	return in.feedLines(ctx, x, channel, r, producer, seen)
}

// feedLines sends the lines of one file, of which seen bytes were taken in before.
func (in *input) feedLines(ctx context.Context, x *running, channel terrarium.ChannelID, r *bufio.Reader, producer string, seen uint64) error {
	var position uint64
	for {
		line, size, err := in.readLine(r)
		position += size
		if in.grows && abi.CodeOf(err) == abi.TooLarge {
			if in.lines.Add(1); position > seen {
				x.report.say("a line of %s is left out: %v", in.name, err)
			}
			continue
		}
		if err != nil {
			return in.ended(ctx, err)
		}
		in.lines.Add(1)
		line, fresh := unseen(line, position, seen)
		if !fresh {
			in.skipped.Add(1)
			continue
		}
		payload := bytes.TrimSuffix(line, []byte("\n"))
		if _, err := x.t.Send(ctx, channel, terrarium.Outgoing{Payload: payload, Producer: producer, Offset: position}); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if abi.CodeOf(err) == abi.Denied {
				in.tellDenied(x.report, err)
				continue
			}
			return fmt.Errorf("line %d of %s: %w", in.lines.Load(), in.name, err)
		}
	}
}

// unseen returns the new part of a line that ends at a position, if seen bytes of the
// input were taken in before. A file may have been read while its last line was only
// half written. The rest is then a line of its own, unless only the newline was
// missing.
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
func (in *input) ended(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("reading %s: %w", in.name, err)
}

// readLine reads a line with its newline, and returns how many bytes it has. At the end of
// the input it returns no line and an error. A line that is too long is an error; of a file
// that is followed, it is read to its end, so that whatever writes the file cannot end the
// command.
func (in *input) readLine(r *bufio.Reader) (line []byte, size uint64, err error) {
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
				Message: fmt.Sprintf("line %d is longer than %d bytes, the size limit of a message", in.lines.Load()+1, deploy.MaxMessage),
				Remedy:  "split it into shorter lines",
			}
			if !in.grows {
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
