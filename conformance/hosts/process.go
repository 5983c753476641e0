package hosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/seed47132306/terrarium/conformance/report"
)

const defaultTimeout = 30 * time.Second

// ProcessOptions bounds a process that is an adapter. Zero fields mean the defaults.
type ProcessOptions struct {
	// Timeout is how long an answer may take; 30 seconds by default.
	Timeout time.Duration
	// MaxAnswer is the length of the longest answer, in bytes; 16 MiB.
	MaxAnswer int
	// Errors receives what the process writes to its standard error; nil discards it.
	Errors io.Writer
}

// process is an adapter that is another process: it reads requests from its standard
// input and writes answers to its standard output, one JSON object on each line.
type process struct {
	o       ProcessOptions
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	answers chan answer // closed when the process has written its last
	ended   chan struct{}
	stop    context.CancelFunc
}

// answer is a line, or why there is none.
type answer struct {
	line []byte
	err  *Trouble
}

// Start starts a command as an adapter. Close waits for the command to end.
func Start(ctx context.Context, command []string, o ProcessOptions) (Adapter, error) {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = 16 << 20
	}
	if o.Errors == nil {
		o.Errors = io.Discard
	}
	ctx, stop := context.WithCancel(ctx)
	p := &process{o: o, cmd: exec.CommandContext(ctx, command[0], command[1:]...), answers: make(chan answer, 1), ended: make(chan struct{}), stop: stop}
	p.cmd.Stderr = o.Errors
	// A copy of what it writes to standard error does not wait for its own processes.
	p.cmd.WaitDelay = time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		p.out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	go p.read(ctx, p.out)
	return p, nil
}

// read hands over lines until the process ends. A line that was not requested waits, and is
// found by the next request.
func (p *process) read(ctx context.Context, out io.Reader) {
	defer close(p.ended)
	defer close(p.answers)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), p.o.MaxAnswer)
	for lines.Scan() {
		select {
		case p.answers <- answer{line: bytes.Clone(lines.Bytes())}:
		case <-ctx.Done():
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		select {
		case p.answers <- answer{err: &Trouble{Reason: report.AdapterFlood, Text: fmt.Sprintf("a line of the adapter is longer than %d bytes", p.o.MaxAnswer)}}:
		case <-ctx.Done():
		}
	}
}

// Do implements [Adapter]. The adapter answers each request once, with the number of the
// request.
func (p *process) Do(ctx context.Context, r *Request) (*Response, error) {
	select { // what was written before the request belongs to none
	case a, ok := <-p.answers:
		if ok && a.err == nil {
			return nil, &Trouble{Reason: report.AdapterNonsense, Text: fmt.Sprintf("the adapter wrote a line that was not requested: %.200q", a.line)}
		}
		return nil, lost(a)
	default:
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	written := make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	go func() {
		_, err := p.in.Write(append(text, '\n'))
		written <- err
	}()
	select {
	case err = <-written:
	case <-ctx.Done():
		p.stop()
		_ = p.in.Close() // ends the write, even if another process has the pipe
		<-written
		return nil, &Trouble{Reason: report.AdapterSilent, Text: fmt.Sprintf("the adapter did not read %s within %v", r.Op, p.o.Timeout)}
	}
	if err != nil {
		return nil, &Trouble{Reason: report.AdapterLost, Text: fmt.Sprintf("the adapter ended before %s: %v", r.Op, err)}
	}
	select {
	case a, ok := <-p.answers:
		if !ok || a.err != nil {
			return nil, lost(a)
		}
		return parse(a.line, r)
	case <-ctx.Done():
		return nil, &Trouble{Reason: report.AdapterSilent, Text: fmt.Sprintf("the adapter did not answer %s within %v", r.Op, p.o.Timeout)}
	}
}

func lost(a answer) error {
	if a.err != nil {
		return a.err
	}
	return &Trouble{Reason: report.AdapterLost, Text: "the adapter ended"}
}

func parse(line []byte, r *Request) (*Response, error) {
	var out Response
	if err := json.Unmarshal(line, &out); err != nil {
		return nil, &Trouble{Reason: report.AdapterNonsense, Text: fmt.Sprintf("the answer to %s is not a response: %v: %.200q", r.Op, err, line)}
	}
	if out.ID != r.ID {
		return nil, &Trouble{Reason: report.AdapterNonsense, Text: fmt.Sprintf("the answer to request %d has the number %d", r.ID, out.ID)}
	}
	return &out, nil
}

// Close implements [Adapter]: it closes the input of the process, and kills it if it does
// not end.
func (p *process) Close(context.Context) error {
	const patience = 2 * time.Second
	err := p.in.Close()
	if errors.Is(err, os.ErrClosed) { // by Do
		err = nil
	}
	timer := time.AfterFunc(patience, func() {
		p.stop()
		_ = p.out.Close() // another process that has the pipe does not hold up the suite
	})
	defer timer.Stop()
	for range p.answers { // a process that still writes can end
	}
	<-p.ended
	werr := p.cmd.Wait()
	p.stop()
	var exited *exec.ExitError
	if errors.As(werr, &exited) || errors.Is(werr, exec.ErrWaitDelay) || errors.Is(werr, context.Canceled) {
		werr = nil // how it ended does not matter
	}
	return errors.Join(err, werr)
}

// Serve is the other side: it lets a program be an adapter of a host that it has in
// process, until its input ends.
func Serve(ctx context.Context, a Adapter, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	const longest = 256 << 20
	lines.Buffer(make([]byte, 64<<10), longest)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			if err := enc.Encode(&Response{Error: "the request is not JSON: " + err.Error()}); err != nil {
				return err
			}
			continue
		}
		answer, err := a.Do(ctx, &r)
		if err != nil {
			return err
		}
		if err := enc.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}
