package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/operations"
)

// printer prints the messages of the output channels.
type printer struct {
	x       *running
	readers []*outputReader

	mu      sync.Mutex // guards the fields below, and written of every reader
	out     *bufio.Writer
	flushed time.Time
}

// lockedPrinter is a printer as lock returns it. Only lock makes one.
type lockedPrinter struct{ *printer }

func (p *printer) lock() lockedPrinter {
	p.mu.Lock()
	return lockedPrinter{p}
}

// outputReader is one --output flag.
type outputReader struct {
	channel string
	reader  *engine.Reader
	written uint64 // the last message in out
	printed atomic.Int64
}

// outputName is the reader's name for outputs. The session keeps the position of a run
// under this name.
const outputName = "output"

// errNoReader says that the reader of standard output has closed it.
var errNoReader = errors.New("standard output was closed by its reader")

func newPrinter(x *running) (*printer, error) {
	p := &printer{x: x, out: bufio.NewWriterSize(x.s.out, 64<<10)}
	for _, name := range x.f.outputs {
		id, err := x.channel(name)
		if err != nil {
			return nil, err
		}
		r, err := x.t.Read(id, outputName, engine.ReaderOptions{FromStart: true})
		if err != nil {
			return nil, err
		}
		p.readers = append(p.readers, &outputReader{channel: name, reader: r})
	}
	return p, nil
}

// run prints until ctx ends, and reports the first failure.
func (p *printer) run(ctx context.Context, fail context.CancelCauseFunc) {
	var wait sync.WaitGroup
	for _, r := range p.readers {
		wait.Go(func() {
			if err := p.print(ctx, r); err != nil {
				fail(err)
			}
		})
	}
	wait.Wait()
	l := p.lock()
	defer l.mu.Unlock()
	if err := l.flush(); err != nil {
		fail(err)
	}
	for _, r := range p.readers {
		r.reader.Close()
	}
}

// print prints one channel.
func (p *printer) print(ctx context.Context, r *outputReader) error {
	for {
		in, err := r.reader.Next(ctx)
		var missed *engine.Missed
		if errors.As(err, &missed) {
			if err := p.tellMissed(r, missed); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			if ctx.Err() != nil || abi.CodeOf(err) == abi.Stopped || abi.CodeOf(err) == abi.NotFound {
				return nil
			}
			return fmt.Errorf("output %s: %w", r.channel, err)
		}
		if err := p.write(r, in); err != nil {
			return err
		}
		r.printed.Add(1)
	}
}

// tellMissed reports, once, messages that cannot be printed. They count as printed.
func (p *printer) tellMissed(r *outputReader, m *engine.Missed) error {
	p.x.report.say("output %s: %v; printing continues after them", r.channel, m)
	l := p.lock()
	defer l.mu.Unlock()
	r.written = m.To
	return l.flush()
}

// flush flushes the printed messages and acknowledges them, so that a later run
// continues after them. After a crash in between they are printed again.
func (p lockedPrinter) flush() error {
	if err := p.out.Flush(); err != nil {
		return outputError(err)
	}
	for _, r := range p.readers {
		r.reader.Ack(r.written)
	}
	p.flushed = time.Now()
	return nil
}

func outputError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errNoReader
	}
	return fmt.Errorf("printing: %w", err)
}

// record is the JSON form of a message on an output.
type record struct {
	Channel string             `json:"channel"`
	Seq     uint64             `json:"seq"`
	ID      string             `json:"id"`
	TS      string             `json:"ts"`
	Sender  string             `json:"sender,omitempty"`
	Headers map[string]string  `json:"headers,omitempty"`
	Payload operations.Payload `json:"payload"`
}

// How much is buffered, and for how long, while more messages wait to be printed.
const (
	flushBytes = 32 << 10
	flushAfter = 100 * time.Millisecond
)

func (p *printer) write(r *outputReader, in engine.Incoming) error {
	l := p.lock()
	defer l.mu.Unlock()
	var err error
	if p.x.f.format == "json" {
		err = l.writeJSON(r, in)
	} else {
		err = l.writeText(r, in)
	}
	if err != nil {
		return outputError(err)
	}
	r.written = in.Seq
	if r.reader.Pending() == 0 || p.out.Buffered() >= flushBytes || time.Since(p.flushed) > flushAfter {
		return l.flush()
	}
	return nil
}

func (p lockedPrinter) writeText(r *outputReader, in engine.Incoming) error {
	if len(p.readers) > 1 {
		if _, err := p.out.WriteString(r.channel + "\t"); err != nil {
			return err
		}
	}
	if _, err := p.out.Write(in.Payload); err != nil {
		return err
	}
	return p.out.WriteByte('\n')
}

func (p lockedPrinter) writeJSON(r *outputReader, in engine.Incoming) error {
	return encodeLine(p.out, record{
		Channel: r.channel, Seq: in.Seq, ID: in.ID.String(), Sender: in.Sender,
		TS: time.Unix(0, in.Time).UTC().Format(time.RFC3339Nano), Headers: in.Headers, Payload: in.Payload,
	})
}

func encodeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// note prints an object that is not a message, at once.
func (p *printer) note(v any) error {
	l := p.lock()
	defer l.mu.Unlock()
	if err := encodeLine(p.out, v); err != nil {
		return outputError(err)
	}
	return l.flush()
}

// drain waits until all messages that have arrived are printed and flushed.
func (p *printer) drain(ctx context.Context) error {
	for _, r := range p.readers {
		if err := r.reader.WaitRead(ctx); err != nil {
			return err
		}
	}
	return nil
}
