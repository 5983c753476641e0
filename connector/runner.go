package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/contain"
)

// Pauses between attempts: the first, which doubles, and the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Declared is a connector that is to run.
type Declared struct {
	Direction  Direction
	Kind       KindName
	Name       string
	Deployment string
	Channel    string // address
	ChannelID  string
	Settings   string // as JSON
	Opened
	// Open opens the channel. It is called before each attempt.
	Open func() (Channel, error)
}

// Channel is what a [Runner] needs from a channel.
type Channel interface {
	Send(ctx context.Context, m Message) (Receipt, error)
	Producers() (map[string]uint64, error)
	// Next and Ack are for sinks, as in [Port].
	Next(ctx context.Context) (Delivery, error)
	Ack(seq uint64)
	// Drained waits until everything that the channel has is acknowledged.
	Drained(ctx context.Context) error
	Close()
}

func (d *Declared) id() string { return string(d.Direction) + "." + d.Deployment + "." + d.Name }

// same reports whether a connector need not be restarted.
func (d *Declared) same(o *Declared) bool {
	return d.Kind == o.Kind && d.Settings == o.Settings && d.ChannelID == o.ChannelID
}

// Runner runs connectors. Its methods may be called from any goroutine.
type Runner struct {
	clock Clock
	log   *slog.Logger
	grace time.Duration // endTime, except in tests

	changing sync.Mutex // held by Set and Close, which wait for connectors

	mu   sync.Mutex // guards list
	list []*running
	over bool
}

// NewRunner returns a runner without connectors. The caller closes it.
func NewRunner(clock Clock, log *slog.Logger) *Runner {
	return &Runner{clock: clock, log: log, grace: endTime}
}

// endTime bounds how long a connector may take to end. One that takes longer is abandoned: it can
// no longer use its channel, and nothing waits for it.
const endTime = 5 * time.Second

// running is one connector.
type running struct {
	Declared
	r      *Runner
	cancel context.CancelFunc
	begun  chan struct{} // closed when it works or has failed for the first time
	begins sync.Once
	ended  chan struct{}
	timed  *Manual // the clock, if moving it waits for the connector
	untime sync.Once

	sent, repeated, refused, failures atomic.Int64

	mu      sync.Mutex // guards the rest
	state   State
	failure error
	problem error
	pause   time.Duration
	worked  time.Time // since when it works, if it does
	channel Channel   // while an attempt runs
	left    bool      // abandoned
}

// Set changes the connectors of a deployment to the declared ones: new ones start,
// changed ones restart, and those that are not declared end. It waits for those that end,
// and abandons those that have not ended after five seconds.
func (r *Runner) Set(deployment string, declared []Declared) {
	r.changing.Lock()
	defer r.changing.Unlock()
	kept := map[string]bool{}
	var over []*running
	for _, x := range r.running() {
		if x.Deployment != deployment || x.abandoned() {
			continue
		}
		if slices.ContainsFunc(declared, func(d Declared) bool { return d.id() == x.id() && d.same(&x.Declared) }) {
			kept[x.id()] = true
			continue
		}
		over = append(over, x)
	}
	r.stop(over)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	for _, d := range declared {
		if kept[d.id()] {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		x := &running{Declared: d, r: r, cancel: cancel, begun: make(chan struct{}), ended: make(chan struct{}), state: Starting}
		r.list = append(r.list, x)
		if m, manual := r.clock.(*Manual); manual {
			if _, timed := d.Connector.(Timed); timed {
				x.timed = m
				m.Begin()
			}
		}
		go x.run(ctx)
	}
}

// running are the connectors, in the order of their start.
func (r *Runner) running() []*running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// stop ends connectors. Those that do not end within a bound are abandoned, and stay in the
// list until they have ended.
func (r *Runner) stop(list []*running) {
	for _, x := range list {
		x.cancel()
	}
	late := time.NewTimer(r.grace)
	defer late.Stop()
	expired := false
	for _, x := range list {
		select {
		case <-x.ended:
		case <-late.C:
			expired = true
		}
		if !expired {
			r.remove(x)
			continue
		}
		select {
		case <-x.ended:
			r.remove(x)
		default:
			x.abandon()
		}
		late.Reset(0)
	}
}

func (r *Runner) remove(x *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(o *running) bool { return o == x })
}

// abandon takes the channel away from a connector that does not end.
func (x *running) abandon() {
	x.mu.Lock()
	ch := x.channel
	x.left, x.state, x.failure, x.channel = true, Abandoned, errAbandoned, nil
	x.mu.Unlock()
	if ch != nil {
		ch.Close()
	}
	x.noTime()
	x.hasBegun()
	x.r.log.Warn("a connector does not end and is abandoned", "direction", x.Direction, "connector", x.Name, "kind", x.Kind, "reaches", x.Reaches, "remedy", errAbandoned.Remedy)
	go func() {
		<-x.ended
		x.r.remove(x)
	}()
}

func (x *running) abandoned() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left
}

// noTime notes that moving the clock no longer waits for the connector.
func (x *running) noTime() {
	if x.timed != nil {
		x.untime.Do(x.timed.End)
	}
}

var errAbandoned = &abi.Error{
	Code: abi.Conflict, Message: "the connector did not end, and can no longer use its channel",
	Remedy: "find out what it waits for, such as a disk or a server that does not answer; the connector disappears when it ends, or with the process",
}

// Close ends all connectors, and waits for them as Set does.
func (r *Runner) Close() {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.stop(slices.DeleteFunc(r.running(), (*running).abandoned))
}

// Status describes all connectors, in the order of their start.
func (r *Runner) Status() []Status {
	var out []Status
	for _, x := range r.running() {
		out = append(out, x.status())
	}
	return out
}

// Begun waits until the connectors of a kind work, have failed or have ended.
func (r *Runner) Begun(kind KindName) {
	for _, x := range r.running() {
		if x.Kind != kind || x.abandoned() {
			continue
		}
		select {
		case <-x.begun:
		case <-x.ended:
		}
	}
}

func (x *running) hasBegun() { x.begins.Do(func() { close(x.begun) }) }

// SourcesEnded waits until all sources that have an end have ended.
func (r *Runner) SourcesEnded(ctx context.Context) error {
	for _, x := range r.running() {
		if x.Direction != Source || x.Endless || x.abandoned() {
			continue
		}
		select {
		case <-x.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// SinksDrained waits until the sinks have delivered everything that their channels have.
func (r *Runner) SinksDrained(ctx context.Context) error {
	for _, x := range r.running() {
		if x.Direction != Sink || x.abandoned() {
			continue
		}
		for {
			done, err := x.drained(ctx)
			if err != nil || done {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// drained waits until a sink has delivered everything, or has failed meanwhile.
func (x *running) drained(ctx context.Context) (bool, error) {
	x.mu.Lock()
	ch := x.channel
	x.mu.Unlock()
	if ch == nil {
		select {
		case <-x.ended:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(drainPoll):
			return false, nil
		}
	}
	if err := ch.Drained(ctx); err != nil {
		return false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.channel == ch, nil
}

// drainPoll is the interval at which a sink that retries is checked.
const drainPoll = 20 * time.Millisecond

func (x *running) status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := Status{
		Direction: x.Direction, Kind: x.Kind, Name: x.Name, Deployment: x.Deployment, Channel: x.Channel, Reaches: x.Reaches,
		State: x.state, Messages: x.sent.Load(), Repeated: x.repeated.Load(), Refused: x.refused.Load(), Failures: x.failures.Load(),
	}
	if x.failure != nil {
		s.Error, s.Remedy = inWords(x.failure)
	}
	if x.problem != nil {
		s.Problem = contain.Text(x.problem.Error())
	}
	return s
}

// inWords returns the message of an error with its causes, and its remedy. The error may come from
// another program, so their lengths are bounded.
func inWords(err error) (message, remedy string) {
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return contain.Text(err.Error()), ""
	}
	message = typed.Message
	if typed.Err != nil {
		message = fmt.Sprintf("%s: %v", message, typed.Err)
	}
	return contain.Text(message), contain.Text(typed.Remedy)
}

// run runs the connector until ctx ends or everything is sent.
func (x *running) run(ctx context.Context) {
	defer close(x.ended)
	defer x.noTime()
	log := x.r.log.With("direction", x.Direction, "connector", x.Name, "kind", x.Kind)
	for {
		err := x.attempt(ctx, log)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			x.mu.Lock()
			x.state, x.failure = Ended, nil
			x.mu.Unlock()
			log.Debug("a connector has ended", "messages", x.sent.Load())
			return
		}
		pause := x.failed(err)
		message, remedy := inWords(err)
		log.Warn("a connector has failed and will be tried again", "error", message, "remedy", remedy, "pause", pause.String(), "failures", x.failures.Load())
		if (&port{x: x}).Until(ctx, x.r.clock.Now().Add(pause)) != nil {
			return
		}
	}
}

// attempt runs the connector once. A panic counts as a failure, so that it does not end
// the process.
func (x *running) attempt(ctx context.Context, log *slog.Logger) error {
	ch, err := x.Open()
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.channel = ch
	left := x.left
	x.mu.Unlock()
	p := &port{x: x, ch: ch, log: log}
	defer func() {
		p.over.Store(true)
		x.mu.Lock()
		x.channel = nil
		x.mu.Unlock()
		ch.Close()
	}()
	if left {
		return errAbandoned // while the channel was opened
	}
	return contain.Call("the connector", func() error { return x.Connector.Run(ctx, p) })
}

// failed notes a failure and returns the pause before the next attempt.
func (x *running) failed(err error) time.Duration {
	x.failures.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	// The other side may accept every connection and then refuse or close it. That is no better
	// than if it could not be reached, so it must have worked for some time.
	worked := x.state == Working && x.r.clock.Now().Sub(x.worked) >= x.pause
	if x.pause == 0 || worked {
		x.pause = firstPause
	} else {
		x.pause = min(2*x.pause, lastPause)
	}
	x.state, x.failure = Retrying, err
	x.hasBegun()
	return x.pause
}

// port implements [Port] for one attempt.
type port struct {
	x     *running
	ch    Channel
	log   *slog.Logger
	over  atomic.Bool // Run has returned, so that its goroutines can no longer use the port
	given []uint64    // the messages of a sink that are not acknowledged, in order
	last  uint64      // the last message that Next has returned
}

// errOver is the error of a port whose attempt is over.
var errOver = &abi.Error{
	Code: abi.Stopped, Message: "the connector has returned from Run, and can no longer use this port",
	Remedy: "end everything that uses the port before Run returns; each call of Run gets a port of its own",
}

// usable returns an error if the port can no longer be used.
func (p *port) usable() error {
	switch {
	case p.x.abandoned():
		return errAbandoned
	case p.over.Load():
		return errOver
	}
	return nil
}

func (p *port) Name() string { return p.x.id() }

func (p *port) Send(ctx context.Context, m Message) (Receipt, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	r, err := p.ch.Send(ctx, m)
	switch {
	case err != nil:
		return r, err
	case m.Mark:
	case r.Duplicate():
		p.x.repeated.Add(1)
	default:
		p.x.sent.Add(1)
	}
	return r, nil
}

func (p *port) Producers() (map[string]uint64, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	return p.ch.Producers()
}

func (p *port) Next(ctx context.Context) (Delivery, error) {
	if err := p.usable(); err != nil {
		return Delivery{}, err
	}
	d, err := p.ch.Next(ctx)
	if err == nil {
		p.given, p.last = append(p.given, d.Seq), d.Seq
	}
	return d, err
}

func (p *port) Ack(seq uint64) {
	if p.usable() != nil {
		return // its successor delivers the message again
	}
	if seq = min(seq, p.last); seq == 0 {
		return // the cursor passes no message that the sink has not got
	}
	p.ch.Ack(seq)
	n, _ := slices.BinarySearch(p.given, seq+1)
	p.x.sent.Add(int64(n))
	p.given = append(p.given[:0], p.given[n:]...)
}

func (p *port) Now() time.Time { return p.x.r.clock.Now() }

func (p *port) Until(ctx context.Context, at time.Time) error {
	if p.over.Load() {
		return errOver
	}
	if p.x.timed != nil {
		return p.x.timed.TimedUntil(ctx, at)
	}
	return p.x.r.clock.Until(ctx, at)
}

func (p *port) Working() {
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	if p.x.left || p.over.Load() {
		return
	}
	if p.x.state != Working {
		p.log.Info("a connector is working", "reaches", p.x.Reaches)
		p.x.worked = p.x.r.clock.Now()
	}
	p.x.state, p.x.failure = Working, nil
	p.x.hasBegun()
}

func (p *port) Refused(err error) {
	if p.over.Load() {
		return
	}
	n := p.x.refused.Add(1)
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	p.x.problem = err
	if n <= maxRefusedLogged {
		message, remedy := inWords(err)
		p.log.Warn("a connector leaves out a message", "error", message, "remedy", remedy)
	}
}

func (p *port) Log() *slog.Logger { return p.log }

// maxRefusedLogged bounds how many refusals of one connector are logged. The status has
// the number of all, and the last reason.
const maxRefusedLogged = 20

// Final reports whether sending a message again cannot help.
func Final(err error) bool {
	switch abi.CodeOf(err) {
	case abi.Denied, abi.TooLarge, abi.InvalidArgument:
		return true
	}
	return false
}
