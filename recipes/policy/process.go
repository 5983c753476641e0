package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// DefaultMemory is how much memory a process for scripts may use beyond what it
// needs to start.
const DefaultMemory = 64 << 20

// grace is how long a process may take beyond the policy's own time before it is
// killed, and startGrace the same for one that has to start first.
const (
	grace      = 500 * time.Millisecond
	startGrace = 5 * time.Second
)

// maxReply bounds what a process may answer, in bytes.
const maxReply = 64 << 20

// children are the processes that run the scripts of a set. One that fails, or
// takes too long, is killed, and another started for the next script.
type children struct {
	options  Options
	manifest []byte

	mu    sync.Mutex
	idle  []*child
	busy  int       // judgements under way
	quiet sync.Cond // busy is 0
}

func newChildren(o Options, policies []*compiled) *children {
	m := manifest{Memory: o.Memory}
	if m.Memory == 0 {
		m.Memory = DefaultMemory
	}
	for _, p := range policies {
		if p.Process {
			own := p.Policy
			own.Match, own.MatchEvent = nil, nil // these are asked here
			m.Policies = append(m.Policies, script{Index: p.index, Policy: own})
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		text = nil // cannot happen: it is texts and numbers
	}
	c := &children{options: o, manifest: text}
	c.quiet.L = &c.mu
	return c
}

// judge has a process judge. What it does there costs the engine's process nothing
// but the time.
func (c *children) judge(p *compiled, s *subject) (answer, *ScriptError) {
	defer c.end()
	ch, err := c.take()
	if err != nil {
		return answer{}, p.fault(1, 1, err.Error(), "")
	}
	a, fault, err := ch.judge(p, s)
	if err != nil {
		ch.kill()
		return answer{}, p.fault(1, 1, fmt.Sprintf("its process ended: %s", ch.epitaph(err)), "")
	}
	c.giveBack(ch)
	return a, fault
}

// take begins a judgement, and returns a process that is not in use.
func (c *children) take() (*child, error) {
	c.mu.Lock()
	c.busy++
	if n := len(c.idle); n > 0 {
		ch := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return ch, nil
	}
	c.mu.Unlock()
	return c.start()
}

// end ends a judgement.
func (c *children) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy--; c.busy == 0 {
		c.quiet.Broadcast()
	}
}

func (c *children) giveBack(ch *child) {
	c.mu.Lock()
	keep := len(c.idle) < maxIdle
	if keep {
		c.idle = append(c.idle, ch)
	}
	c.mu.Unlock()
	if !keep {
		ch.kill()
	}
}

// close ends all processes, as soon as none is in use. Whoever judges again starts
// others.
func (c *children) close() {
	c.mu.Lock()
	for c.busy > 0 {
		c.quiet.Wait()
	}
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, ch := range idle {
		ch.kill()
	}
}

// child is one process. One goroutine uses it at a time.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	in      *json.Encoder
	limit   *io.LimitedReader
	out     *json.Decoder
	fresh   bool // it has not answered yet
	// manifest is what a fresh process has to be told first.
	manifest []byte
	late     bool // it was killed because it took too long
	once     sync.Once
	err      error // of its end
}

func (c *children) start() (*child, error) {
	if len(c.options.Command) == 0 {
		return nil, errors.New("no command is known that runs policies in another process")
	}
	command := exec.Command(c.options.Command[0], c.options.Command[1:]...)
	command.Env = []string{} // scripts are not told who runs them
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("its process cannot be started: %w", err)
	}
	ch := &child{command: command, stdin: stdin, in: json.NewEncoder(stdin), manifest: c.manifest, limit: &io.LimitedReader{R: stdout, N: maxReply}, fresh: true}
	ch.out = json.NewDecoder(ch.limit)
	return ch, nil
}

func (ch *child) judge(p *compiled, s *subject) (answer, *ScriptError, error) {
	patience := p.Timeout + grace
	if ch.fresh {
		patience += startGrace
	}
	expired := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(expired)
		ch.late = true
		ch.end()
	})
	r, err := ch.ask(p, s)
	if !timer.Stop() {
		<-expired
		return answer{}, nil, errTimeout
	}
	if err != nil {
		return answer{}, nil, err
	}
	ch.fresh = false
	a, fault := r.answer()
	return a, fault, nil
}

// ask sends a question, and supplies what the process needs for the answer.
func (ch *child) ask(p *compiled, s *subject) (*reply, error) {
	ch.limit.N = maxReply
	if ch.fresh {
		if _, err := ch.stdin.Write(ch.manifest); err != nil {
			return nil, err
		}
	}
	if err := ch.in.Encode(question{Index: p.index, Send: s.send, Event: s.event}); err != nil {
		return nil, err
	}
	for {
		var r reply
		if err := ch.out.Decode(&r); err != nil {
			return nil, err
		}
		var more supply
		around := s.surroundings()
		switch {
		case r.Needs == "":
			return &r, nil
		case r.Needs == needsGraph && around.View != nil:
			more.Graph = around.View()
		case r.Needs == needsMemory && around.Memory != nil:
			more.Memory = around.Memory.Recall(p.memory)
		}
		if err := ch.in.Encode(more); err != nil {
			return nil, err
		}
	}
}

// end ends the process without waiting for it.
func (ch *child) end() { _ = ch.command.Process.Kill() } // it may have ended by itself

// kill ends the process and waits for it.
func (ch *child) kill() {
	ch.once.Do(func() {
		_ = ch.stdin.Close() // it is about to end
		ch.end()
		ch.err = ch.command.Wait()
	})
}

// epitaph says why the process ended.
func (ch *child) epitaph(cause error) string {
	state := ch.command.ProcessState
	switch {
	case ch.late:
		return "it took too long, and was killed"
	case state != nil && (state.ExitCode() == exitMemory || state.ExitCode() == 2):
		return "it used more memory than it may"
	case errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF):
		return fmt.Sprint(ch.err)
	}
	return cause.Error()
}
