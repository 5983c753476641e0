package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// printer prints what arrives on the output channels.
type printer struct {
	x       *running
	readers []*outputReader
	failed  chan struct{} // closed when printing has failed; err says why
	err     error
	once    sync.Once

	mu  sync.Mutex // guards out
	out *bufio.Writer
}

// outputReader is one --output.
type outputReader struct {
	channel string
	reader  *engine.Reader
	printed atomic.Int64
}

// outputName is the name under which outputs are read: where a run has got to
// is kept under it.
const outputName = "output"

func newPrinter(x *running) (*printer, error) {
	p := &printer{x: x, failed: make(chan struct{}), out: bufio.NewWriterSize(x.s.out, 64<<10)}
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

// run prints until ctx ends.
func (p *printer) run(ctx context.Context) {
	var wait sync.WaitGroup
	for _, r := range p.readers {
		wait.Go(func() {
			defer r.reader.Close()
			if err := p.print(ctx, r); err != nil {
				p.once.Do(func() {
					p.err = err
					close(p.failed)
				})
			}
		})
	}
	wait.Wait()
}

// print prints one channel. What has been written is acknowledged, so that a
// later run goes on after it; after a crash in between it is printed again.
func (p *printer) print(ctx context.Context, r *outputReader) error {
	for {
		in, err := r.reader.Next(ctx)
		if err != nil {
			if ctx.Err() != nil || abi.CodeOf(err) == abi.Stopped || abi.CodeOf(err) == abi.NotFound {
				return nil
			}
			return fmt.Errorf("output %s: %w", r.channel, err)
		}
		if err := p.write(r, in); err != nil {
			return fmt.Errorf("output %s: %w", r.channel, err)
		}
		r.printed.Add(1)
		r.reader.Ack(in.Seq)
	}
}

// record is the JSON form of a message on an output.
type record struct {
	Channel string            `json:"channel"`
	Seq     uint64            `json:"seq"`
	ID      string            `json:"id"`
	TS      string            `json:"ts"`
	Sender  string            `json:"sender,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload terrarium.Payload `json:"payload"`
}

func (p *printer) write(r *outputReader, in engine.Incoming) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.x.f.format == "json" {
		err = p.writeJSON(r, in)
	} else {
		if len(p.readers) > 1 {
			_, err = p.out.WriteString(r.channel + "\t")
		}
		_, werr := p.out.Write(append(in.Payload, '\n'))
		err = errors.Join(err, werr)
	}
	if err == nil && r.reader.Pending() == 0 {
		err = p.out.Flush()
	}
	return err
}

func (p *printer) writeJSON(r *outputReader, in engine.Incoming) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(record{
		Channel: r.channel, Seq: in.Seq, ID: in.ID.String(), Sender: in.Sender,
		TS: time.Unix(0, in.Time).UTC().Format(time.RFC3339Nano), Headers: in.Headers, Payload: in.Payload,
	})
}

// drain waits until everything that has arrived is printed.
func (p *printer) drain(ctx context.Context) error {
	for _, r := range p.readers {
		if err := r.reader.WaitRead(ctx); err != nil && ctx.Err() == nil {
			select {
			case <-p.failed:
				return p.err
			default:
				return err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Flush()
}
