package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// input is one --input: lines of a file that go to a channel.
type input struct {
	channel string
	name    string // of the file, for messages
	file    io.ReadCloser
	once    sync.Once // closes file

	lines   atomic.Int64 // read so far
	skipped atomic.Int64 // of which the session had taken in before
}

// openInputs opens all inputs, so that a file that is missing is known before
// anything starts.
func openInputs(specs []string, s streams) ([]*input, error) {
	var out []*input
	stdin := false
	for _, spec := range specs {
		channel, name, _ := strings.Cut(spec, "=")
		in := &input{channel: channel, name: name}
		if name == "-" {
			if stdin {
				closeInputs(out)
				return nil, usage("--input %s: standard input can be read only once", spec)
			}
			stdin = true
			in.name, in.file = "standard input", s.in
		} else {
			f, err := os.Open(name)
			if err != nil {
				closeInputs(out)
				return nil, usage("--input %s: %w", spec, err)
			}
			in.file = f
		}
		out = append(out, in)
	}
	return out, nil
}

func closeInputs(list []*input) {
	for _, in := range list {
		in.once.Do(func() { in.file.Close() })
	}
}

// headBytes is how much of the beginning of an input identifies it.
const headBytes = 64 << 10

// feed sends each line to the channel. The line number is the producer's
// offset, so a line that the session has taken in before is left out.
func (in *input) feed(ctx context.Context, x *running) error {
	channel, err := x.channel(in.channel)
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(in.file, headBytes)
	producer, seen, err := in.identify(x, channel, r)
	if err != nil {
		return in.failed(ctx, err)
	}
	var buf []byte
	for n := uint64(1); ; n++ {
		line, err := readLine(r, &buf)
		if len(line) == 0 && err != nil {
			return in.failed(ctx, err)
		}
		in.lines.Store(int64(n))
		if n <= seen {
			in.skipped.Store(int64(n))
			continue
		}
		payload := append([]byte(nil), strings.TrimSuffix(string(line), "\n")...)
		_, serr := x.t.Send(ctx, channel, terrarium.Outgoing{Payload: payload, Producer: producer, Offset: n})
		if serr != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("line %d of %s: %w", n, in.name, serr)
		}
	}
}

// failed is what the end of the reading means: nothing at the end of the file
// or after an interruption.
func (in *input) failed(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("reading %s: %w", in.name, err)
}

// readLine reads a line with its end, using buf for it.
func readLine(r *bufio.Reader, buf *[]byte) ([]byte, error) {
	line := (*buf)[:0]
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > engine.MaxMessage {
			return nil, fmt.Errorf("a line is longer than %d bytes, the most a message may have", engine.MaxMessage)
		}
		*buf = line
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// identify finds out whether the session has read this input before, and how
// far. An input is known by its beginning and not by its name: a file that has
// grown is the same input, and another file of the same name, after a log was
// rotated, is not.
//
// The name of the producer says how: "head:" the length of the first line ":"
// its hash ":" the length of the beginning that was there at the first reading
// ":" its hash.
func (in *input) identify(x *running, channel terrarium.ChannelID, r *bufio.Reader) (producer string, seen uint64, err error) {
	if _, err := r.Peek(1); err != nil {
		return "", 0, err
	}
	head, err := peekLine(r)
	if err != nil {
		return "", 0, err
	}
	known, err := x.t.Producers(channel)
	if err != nil {
		return "", 0, err
	}
	best := uint64(0)
	for name := range known {
		first, whole, ok := parseProducer(name)
		if !ok || !first.matches(head) {
			continue
		}
		if whole.length > len(head) {
			// The beginning has not arrived yet: wait for it.
			head, err = r.Peek(whole.length)
			if err != nil && !errors.Is(err, io.EOF) {
				return "", 0, err
			}
		}
		if whole.matches(head) && known[name] >= best {
			producer, best = name, known[name]
		}
	}
	if producer != "" {
		return producer, best, nil
	}
	return producerName(head), 0, nil
}

// peekLine looks at what has arrived, which is the first line at least, unless
// that is very long.
func peekLine(r *bufio.Reader) ([]byte, error) {
	for want := r.Buffered(); ; {
		head, err := r.Peek(want)
		if strings.IndexByte(string(head), '\n') >= 0 || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) || len(head) >= headBytes {
			return head, nil
		}
		if err != nil {
			return nil, err
		}
		want = max(r.Buffered(), want+1)
	}
}

// fingerprint is a beginning of an input.
type fingerprint struct {
	length int
	hash   string
}

func printOf(b []byte) fingerprint {
	sum := sha256.Sum256(b)
	return fingerprint{len(b), hex.EncodeToString(sum[:8])}
}

func (f fingerprint) matches(b []byte) bool {
	return len(b) >= f.length && printOf(b[:f.length]) == f
}

func producerName(head []byte) string {
	first := head
	if i := strings.IndexByte(string(head), '\n'); i >= 0 {
		first = head[:i+1]
	}
	f, w := printOf(first), printOf(head)
	return fmt.Sprintf("head:%d:%s:%d:%s", f.length, f.hash, w.length, w.hash)
}

func parseProducer(name string) (first, whole fingerprint, ok bool) {
	parts := strings.Split(name, ":")
	if len(parts) != 5 || parts[0] != "head" {
		return first, whole, false
	}
	a, err1 := strconv.Atoi(parts[1])
	b, err2 := strconv.Atoi(parts[3])
	if err1 != nil || err2 != nil {
		return first, whole, false
	}
	return fingerprint{a, parts[2]}, fingerprint{b, parts[4]}, true
}

// channel finds a channel of the recipe by its name or address.
func (x *running) channel(name string) (terrarium.ChannelID, error) {
	for _, address := range []string{name, "channel." + name} {
		if id, ok := x.applied.Channels[address]; ok {
			return id, nil
		}
	}
	return x.t.FindChannel("", name)
}

func deliveries[N int | int64 | uint64](n N) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}
