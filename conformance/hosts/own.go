package hosts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/replay"
)

// own is the adapter of terrarium's host. Creatures run on stages that share a clock;
// messages between them wait until the clock is advanced.
type own struct {
	host      *host.Host
	creatures map[string]*resident
	names     []string // in the order in which they were loaded
	queue     []mail
	open      []question
	now       int64 // nanoseconds since Begin
	ids       uint64
}

// resident is a loaded creature.
type resident struct {
	name   string
	module abi.Module
	stage  *stage.Creature
	send   []Edge
	listen []Edge
}

// mail is a delivery that waits.
type mail struct {
	to string
	d  stage.Delivery
	q  uint64 // of the request
}

// question is a request without an answer.
type question struct {
	id    uint64
	asker string
	tag   int64
	due   int64
}

// NewOwn returns an adapter of terrarium's host in this process.
func NewOwn(ctx context.Context, o host.Options) (Adapter, error) {
	h, err := host.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return &own{host: h, creatures: map[string]*resident{}}, nil
}

func (a *own) Close(ctx context.Context) error {
	return errors.Join(a.reset(ctx), a.host.Close(ctx))
}

func (a *own) reset(ctx context.Context) (err error) {
	for _, c := range a.creatures {
		c.stage.Close(ctx)
		err = errors.Join(err, c.module.Close(ctx))
	}
	clear(a.creatures)
	a.names, a.queue, a.open, a.now, a.ids = nil, nil, nil, 0, 0
	return err
}

func (a *own) Do(ctx context.Context, r *Request) (*Response, error) {
	out := &Response{ID: r.ID}
	var err error
	switch r.Op {
	case OpHello:
		out.Host, out.Version = "terrarium", "1"
		out.Features = []string{"timers", "requests", "tools", "awareness", "fuel"}
	case OpReset:
		err = a.reset(ctx)
	case OpCheck:
		var x *host.Examination
		if x, err = a.host.Examine(ctx, r.Module); err == nil {
			for _, p := range x.Problems {
				out.Problems = append(out.Problems, Problem{Code: abi.CodeOf(p).String(), Text: p.Error()})
			}
		}
	case OpLoad:
		err = a.load(ctx, r, out)
	case OpSend:
		a.ids++
		a.publish("", r.Channel, stage.Delivery{Kind: stage.Message, Payload: r.Payload, Headers: pairs(r.Headers), Message: a.ids})
	case OpAdvance:
		err = a.advance(ctx, r.MS, out)
	default:
		err = a.onCreature(ctx, r, out)
	}
	if err != nil && ctx.Err() == nil {
		out.Error, err = err.Error(), nil
	}
	return out, err
}

func (a *own) onCreature(ctx context.Context, r *Request, out *Response) error {
	c := a.creatures[r.Creature]
	if c == nil {
		return fmt.Errorf("there is no creature %q", r.Creature)
	}
	switch r.Op {
	case OpDeliver:
		t, err := a.turn(ctx, c, deliveryOf(r), 0)
		if err != nil {
			return err
		}
		out.Turns = append(out.Turns, *t)
	case OpDrop:
		c.stage.Close(ctx)
	case OpStop:
		t := Turn{Creature: c.name, Status: abi.OK.String()}
		logs, err := c.stage.Stop(ctx)
		if err != nil {
			t.Status, t.Text = abi.CodeOf(err).String(), err.Error()
		}
		t.Logs = lines(logs)
		out.Turns = append(out.Turns, t)
	default:
		return fmt.Errorf("there is no operation %q", r.Op)
	}
	out.Instances = c.stage.Instances()
	return nil
}

func deliveryOf(r *Request) stage.Delivery {
	d := stage.Delivery{
		Number: abi.Kind(r.Kind), Alias: r.Alias, Payload: r.Payload, Headers: pairs(r.Headers), Sender: r.Sender, Name: r.Name,
		Tag: r.Tag, Code: r.Code, Wire: r.Wire, Attempt: r.Attempt, Message: r.Message,
	}
	if r.Deadline > 0 {
		d.Deadline = (time.Duration(r.Deadline) * time.Millisecond).String()
	}
	return d
}

func pairs(list [][2]string) map[string]string {
	out := map[string]string{}
	for _, p := range list {
		out[p[0]] = p[1]
	}
	return out
}

func (a *own) load(ctx context.Context, r *Request, out *Response) error {
	t := Turn{Creature: r.Creature, Status: abi.OK.String()}
	limits, err := limitsOf(r.Limits)
	if err != nil {
		return err
	}
	if r.Limits != nil {
		limits.Deadline = time.Duration((*r.Limits)["deadline"]) * time.Millisecond
	}
	failed := func(err error) {
		t.Status, t.Text = abi.CodeOf(err).String(), err.Error()
		out.Turns = append(out.Turns, t)
	}
	module, err := a.host.Compile(ctx, r.Module)
	if err != nil {
		failed(err)
		return nil
	}
	c := &resident{name: r.Creature, module: module, send: r.Send, listen: r.Listen}
	o := stage.Options{
		Name: r.Creature, Config: string(r.Config), Limits: limits, Fresh: r.Fresh,
		Grants: journal.Grants{Clock: r.Clock, Random: r.Random}, Tool: scripted(r.Tools),
		Peers: slices.Clone(a.names),
	}
	for _, e := range r.Send {
		o.Send = append(o.Send, e.Alias)
	}
	for _, f := range abi.Features {
		if slices.Contains(r.Lacks, f.Name) {
			o.Lacks = append(o.Lacks, f.Feature)
		}
	}
	if c.stage, err = stage.New(module, o); err != nil {
		return errors.Join(err, module.Close(ctx))
	}
	for _, key := range slices.Sorted(maps.Keys(r.State)) {
		c.stage.Write(key, r.State[key], false)
	}
	c.stage.Set(a.now)
	logs, err := c.stage.Start(ctx)
	t.Logs = lines(logs)
	if err != nil {
		failed(err)
		return module.Close(ctx)
	}
	if old := a.creatures[c.name]; old != nil {
		return errors.Join(fmt.Errorf("the creature %q is there already", c.name), module.Close(ctx))
	}
	for _, other := range a.creatures {
		other.stage.Know(c.name)
	}
	a.creatures[c.name] = c
	a.names = append(a.names, c.name)
	out.Turns, out.Instances = append(out.Turns, t), c.stage.Instances()
	return nil
}

// scripted returns the answers of group tools.
func scripted(tools []Tool) func(name, args []byte) ([]byte, *abi.Error) {
	if tools == nil {
		return nil
	}
	return func(name, _ []byte) ([]byte, *abi.Error) {
		at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == string(name) })
		if at < 0 {
			return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("there is no tool %q", name)}
		}
		if code, ok := abi.ParseCode(tools[at].Code); ok {
			return nil, &abi.Error{Code: code, Message: "the tool refuses"}
		}
		return []byte(tools[at].Result), nil
	}
}

// turn hands a delivery to a creature and routes what it sends. The number is that of the
// request that it handles, or 0.
func (a *own) turn(ctx context.Context, c *resident, d stage.Delivery, asked uint64) (*Turn, error) {
	c.stage.Set(a.now)
	rec, err := c.stage.Deliver(ctx, &d)
	if err != nil {
		return nil, err
	}
	t := &Turn{Creature: c.name, Kind: int32(d.KindNumber()), Alias: d.Alias, Payload: d.Payload, Status: rec.Status}
	if rec.Error != nil {
		t.Text = rec.Error.Message
	}
	for _, e := range rec.Effects {
		switch e.Kind {
		case replay.EffectLog:
			t.Logs = append(t.Logs, [2]string{e.Target, string(e.Payload)})
		case replay.EffectTool: // the result of the call is what the suite sees
		default:
			t.Effects = append(t.Effects, effectOf(e, rec))
		}
	}
	a.route(c, t, asked)
	return t, nil
}

// lines returns log lines as an adapter does.
func lines(logs []journal.LogPayload) (out [][2]string) {
	for _, l := range logs {
		out = append(out, [2]string{l.Level, l.Text})
	}
	return out
}

func effectOf(e replay.Effect, rec *stage.Record) Effect {
	out := Effect{To: e.Target, Payload: e.Payload}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		out.Headers = append(out.Headers, [2]string{name, e.Headers[name]})
	}
	switch e.Kind {
	case replay.EffectSend:
		out.Kind = EffectSend
	case replay.EffectSendTo:
		out.Kind = EffectSendTo
	case replay.EffectRequest:
		out.Kind = EffectRequest
		q := rec.Asked[0]
		rec.Asked = rec.Asked[1:]
		out.Tag, out.MS = q.Tag, q.Deadline.Milliseconds()
	case replay.EffectReply:
		out.Kind = EffectReply
	case replay.EffectOutput:
		out.Kind = EffectOutput
	case replay.EffectState:
		if out.Kind = EffectState; e.Detail != "" {
			out.Kind, out.Payload = EffectDelete, nil
		}
	case replay.EffectTimer:
		out.Kind = EffectCancel
		at := slices.IndexFunc(rec.Timers, func(x journal.NotedTimer) bool { return x.Name == e.Target })
		if x := rec.Timers[at]; !x.Cancelled {
			out.Kind, out.MS, out.Period = EffectTimer, x.Delay/int64(time.Millisecond), x.Period/int64(time.Millisecond)
		}
	}
	return out
}

// publish puts a message into the queue for every listener of a channel but its sender.
func (a *own) publish(from, channel string, d stage.Delivery) {
	for _, name := range a.names {
		for _, e := range a.creatures[name].listen {
			if name != from && e.Channel == channel {
				copied := d
				copied.Alias = e.Alias
				a.queue = append(a.queue, mail{to: name, d: copied})
			}
		}
	}
}

// route puts what a turn sent into the queue.
func (a *own) route(c *resident, t *Turn, asked uint64) {
	replied := false
	for _, e := range t.Effects {
		a.ids++
		d := stage.Delivery{Kind: stage.Message, Payload: e.Payload, Sender: c.name, Message: a.ids, Headers: pairs(e.Headers)}
		switch e.Kind {
		case EffectSend:
			for _, edge := range c.send {
				if edge.Alias == e.To {
					a.publish(c.name, edge.Channel, d)
				}
			}
		case EffectSendTo:
			a.queue = append(a.queue, mail{to: e.To, d: d})
		case EffectRequest:
			d.Kind, d.Deadline = stage.Request, (time.Duration(e.MS) * time.Millisecond).String()
			a.open = append(a.open, question{a.ids, c.name, e.Tag, a.now + e.MS*int64(time.Millisecond)})
			a.queue = append(a.queue, mail{to: e.To, d: d, q: a.ids})
		case EffectReply:
			replied = true
			a.answer(asked, abi.OK, e.Payload)
		}
	}
	switch {
	case asked == 0 || replied:
	case t.Status == abi.OK.String():
		a.answer(asked, abi.Unavailable, []byte("the request was handled without a reply"))
	default:
		code, _ := abi.ParseCode(t.Status)
		a.answer(asked, code, []byte(t.Text))
	}
}

// answer puts the result of a request into the queue, if its sender still waits.
func (a *own) answer(id uint64, code abi.Code, payload []byte) {
	at := slices.IndexFunc(a.open, func(q question) bool { return q.id == id })
	if at < 0 {
		return
	}
	q := a.open[at]
	a.open = slices.Delete(a.open, at, at+1)
	a.queue = append(a.queue, mail{to: q.asker, d: stage.Delivery{Kind: stage.Result, Tag: q.tag, Code: code.String(), Payload: payload}})
}

// maxTurns bounds the turns of one advance.
const maxTurns = 10_000

// advance moves the clock from one due timer or deadline to the next, and hands out what
// waits at each.
func (a *own) advance(ctx context.Context, ms int64, out *Response) error {
	end := a.now + ms*int64(time.Millisecond)
	for range maxTurns {
		if len(a.queue) > 0 {
			m := a.queue[0]
			a.queue = a.queue[1:]
			c := a.creatures[m.to]
			if c == nil {
				a.answer(m.q, abi.NotConnected, []byte("there is no such creature"))
				continue
			}
			t, err := a.turn(ctx, c, m.d, m.q)
			if err != nil {
				return err
			}
			out.Turns = append(out.Turns, *t)
			continue
		}
		if !a.step(end) {
			return nil
		}
	}
	return fmt.Errorf("more than %d turns", maxTurns)
}

// step moves the clock to the next event before end, and puts it into the queue.
func (a *own) step(end int64) bool {
	var timer *stage.Timer
	var owner string
	due := int64(-1)
	for _, name := range a.names {
		if t := a.creatures[name].stage.Next(); t != nil && (timer == nil || t.Due() < timer.Due()) {
			timer, owner = t, name
		}
	}
	if timer != nil {
		due = timer.Due() - stage.Begin*int64(time.Second)
	}
	late := slices.IndexFunc(a.open, func(q question) bool {
		return q.due <= end && (due < 0 || q.due < due) && q.due == slices.MinFunc(a.open, func(x, y question) int { return cmp.Compare(x.due, y.due) }).due
	})
	switch {
	case late >= 0:
		a.now = max(a.now, a.open[late].due)
		a.answer(a.open[late].id, abi.Deadline, []byte("no reply came in time"))
		return true
	case timer != nil && due <= end:
		a.now = max(a.now, due)
		a.queue = append(a.queue, mail{to: owner, d: stage.Delivery{Kind: stage.TimerFired, Name: timer.Name, Payload: bytes.Clone(timer.Payload)}})
		return true
	}
	a.now = end
	return false
}
