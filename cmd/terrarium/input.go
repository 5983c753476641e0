package main

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector/files"
)

// input is one --input flag: lines of a file that are sent to a channel.
type input struct {
	files.Lines // LeaveOut is set for a regular file with --follow
	channel     string
	file        io.ReadCloser
	info        os.FileInfo // nil for standard input
	once        sync.Once   // closes file

	denied atomic.Int64 // lines that policies have denied
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
		in.LeaveOut = follow && in.info != nil && in.info.Mode().IsRegular()
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
		return &input{channel: channel, Lines: files.Lines{Name: "standard input"}, file: file}, nil
	}
	in := &input{channel: channel, Lines: files.Lines{Name: name}}
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
	in.Now = time.Now
	in.Known = func() (map[string]uint64, error) { return x.t.Producers(channel) }
	in.LeftOut = func(err error) { x.report.say("a line of %s is left out: %v", in.Name, err) }
	in.Take = func(ctx context.Context, line []byte, producer string, offset uint64) error {
		_, err := x.t.Send(ctx, channel, terrarium.Outgoing{Payload: line, Producer: producer, Offset: offset})
		if abi.CodeOf(err) == abi.Denied && ctx.Err() == nil {
			in.tellDenied(x.report, err)
			return nil
		}
		return err
	}
	if in.LeaveOut {
		return in.Follow(ctx, in.Name)
	}
	return in.Feed(ctx, in.file)
}
