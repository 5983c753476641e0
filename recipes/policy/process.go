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

// DefaultMemory bounds the memory of a process for scripts, beyond what it needs to
// start.
const DefaultMemory = 64 << 20

// grace is how long a process may exceed the policy's timeout before it is killed, and
// startGrace how long it may take to start.
const (
	grace      = 250 * time.Millisecond
	startGrace = 30 * time.Second // no script runs then, so only a slow machine can exceed it
)

// maxReply bounds the answer of a process, in bytes.
const maxReply = 64 << 20

// children are the processes that run the scripts of a set. A process that fails or takes
// too long is killed. A spare process is kept ready to replace it, so that the next
// script does not wait for a process to start.
type children struct {
	owner    *Processes
	options  Options
	manifest []byte

	mu sync.Mutex
	waiting
	busy  int       // current judgements, plus 1 while a spare starts or processes end
	warms bool      // a spare is starting
	quiet sync.Cond // busy is 0
}

// waiting are the processes that are not in use, and the time that they are kept.
type waiting struct {
	idle    []*child
	spare   *child         // ready; nil if there is none yet
	pause   *time.Timer    // runs while no judgement does; nil otherwise
	pausing sync.WaitGroup // what the timer started
}

// begin starts the time after which end is called.
func (w *waiting) begin(pause time.Duration, end func()) {
	w.pausing.Add(1)
	w.pause = time.AfterFunc(pause, func() {
		defer w.pausing.Done()
		end()
	})
}

// interrupt stops that time.
func (w *waiting) interrupt() {
	if w.pause != nil && w.pause.Stop() {
		w.pausing.Done()
	}
	w.pause = nil
}

// take returns all processes, which the caller ends.
func (w *waiting) take() []*child {
	all := w.idle
	if w.spare != nil {
		all = append(all, w.spare)
	}
	w.idle, w.spare = nil, nil
	w.interrupt()
	return all
}

func newChildren(owner *Processes, o Options, policies []*compiled) *children {
	m := manifest{Memory: o.Memory}
	if m.Memory == 0 {
		m.Memory = DefaultMemory
	}
	for _, p := range policies {
		if p.Process {
			own := p.Policy
			own.Match, own.MatchEvent = nil, nil // this process evaluates the conditions
			m.Policies = append(m.Policies, script{Index: p.index, Policy: own})
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		text = nil // cannot happen: it has only texts and numbers
	}
	c := &children{owner: owner, options: o, manifest: text}
	c.quiet.L = &c.mu
	return c
}

// judge judges in a separate process, so that the script costs the engine's process only
// time.
func (c *children) judge(p *compiled, s *subject) (answer, *ScriptError) {
	defer c.endJudgement()
	ch, err := c.borrowChild()
	if err != nil {
		return answer{}, p.fault(1, 1, err.Error(), "")
	}
	a, fault, err := ch.judge(p, s)
	if errors.Is(err, errGone) {
		ch.kill()
		if ch, err = c.start(); err != nil {
			return answer{}, p.fault(1, 1, err.Error(), "")
		}
		a, fault, err = ch.judge(p, s)
	}
	if err != nil {
		ch.kill()
		return answer{}, p.fault(1, 1, fmt.Sprintf("its process ended: %s", ch.epitaph(err)), "")
	}
	c.giveBack(ch)
	return a, fault
}

// borrowChild begins a judgement, and returns a process that is not in use.
func (c *children) borrowChild() (*child, error) {
	c.mu.Lock()
	c.busy++
	c.interrupt()
	if err := c.owner.add(c); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	ch := c.spare
	if n := len(c.idle); n > 0 {
		ch = c.idle[n-1]
		c.idle = c.idle[:n-1]
	} else {
		c.spare = nil
	}
	if c.spare == nil && !c.warms {
		c.warms = true
		c.busy++
		go c.warm()
	}
	c.mu.Unlock()
	if ch != nil {
		return ch, nil
	}
	return c.start()
}

// warm starts the next spare.
func (c *children) warm() {
	ch, err := c.start()
	c.mu.Lock()
	if c.warms = false; err == nil { // the judgement that needs a process reports the error
		c.spare = ch
	}
	c.mu.Unlock()
	c.endJudgement()
}

func (c *children) endJudgement() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy--; c.busy > 0 {
		return
	}
	c.quiet.Broadcast()
	if c.spare == nil && len(c.idle) == 0 {
		c.owner.forget(c)
		return
	}
	c.begin(c.owner.keptFor(), c.rest)
}

// rest ends all processes if none is in use. A later judgement starts new ones.
func (c *children) rest() {
	c.mu.Lock()
	if c.busy > 0 {
		c.mu.Unlock()
		return
	}
	c.busy++
	all := c.take()
	c.mu.Unlock()
	c.end(all)
}

// end ends processes that were taken while busy counted it.
func (c *children) end(all []*child) {
	for _, ch := range all {
		ch.kill()
	}
	c.endJudgement()
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

// close ends all processes as soon as none is in use.
func (c *children) close() {
	c.mu.Lock()
	for c.busy > 0 {
		c.quiet.Wait()
	}
	c.busy++
	all := c.take()
	c.mu.Unlock()
	c.end(all)
	c.pausing.Wait()
}

// child is one process. One goroutine at a time may use it.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	in      *json.Encoder
	limit   *io.LimitedReader
	out     *json.Decoder
	late    bool // it was killed because it took too long
	once    sync.Once
	err     error // why it ended
}

// start starts a process, and waits until it is ready.
func (c *children) start() (*child, error) {
	if len(c.options.Command) == 0 {
		return nil, errors.New("no command is configured to run policies in another process")
	}
	command := exec.Command(c.options.Command[0], c.options.Command[1:]...)
	command.Env = []string{} // scripts cannot read the environment of the engine
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
	ch := &child{command: command, stdin: stdin, in: json.NewEncoder(stdin), limit: &io.LimitedReader{R: stdout, N: maxReply}}
	ch.out = json.NewDecoder(ch.limit)
	err = ch.within(startGrace, func() error {
		if _, err := stdin.Write(c.manifest); err != nil {
			return err
		}
		return ch.out.Decode(&reply{})
	})
	if err != nil {
		ch.kill()
		return nil, fmt.Errorf("its process ended: %s", ch.epitaph(err))
	}
	return ch, nil
}

// within calls f, which talks to the process. After the time d, the process is killed,
// which ends f.
func (ch *child) within(d time.Duration, f func() error) error {
	expired := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(expired)
		ch.late = true
		ch.killProcess()
	})
	err := f()
	if !timer.Stop() {
		<-expired
		return errTimeout
	}
	return err
}

// errGone means that a process does not accept a question: it ended while it was idle,
// for example because the system needed its memory.
var errGone = errors.New("the process does not read")

func (ch *child) judge(p *compiled, s *subject) (answer, *ScriptError, error) {
	var r *reply
	err := ch.within(p.Timeout+grace, func() (err error) {
		r, err = ch.ask(p, s)
		return err
	})
	if err != nil {
		return answer{}, nil, err
	}
	a, fault := r.answer()
	return a, fault, nil
}

// ask sends a question, and supplies the data that the process needs for the answer.
func (ch *child) ask(p *compiled, s *subject) (*reply, error) {
	ch.limit.N = maxReply
	if err := ch.in.Encode(question{Index: p.index, Send: s.send, Event: s.event}); err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
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

// killProcess ends the process without waiting for it.
func (ch *child) killProcess() { _ = ch.command.Process.Kill() } // it may have ended by itself

// kill ends the process and waits for it.
func (ch *child) kill() {
	ch.once.Do(func() {
		_ = ch.stdin.Close() // it is killed anyway
		ch.killProcess()
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
		return "it used more memory than allowed"
	case errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF):
		return fmt.Sprint(ch.err)
	}
	return cause.Error()
}
