// Command wazero is a host for creatures on wazero's interpreter, as an adapter of the
// conformance suite for hosts. It was written from abi/README.md and
// docs/reference/host-adapters.md, and shares only the tables of package abi and the messages of
// package adapter with terrarium's own host. It has neither a meter nor a validator: fuel is not counted, and the interpreter
// alone bounds the stack.
//
//	go build -o wazero-host ./conformance/hosts/wazero
//	terrarium conformance host --adapter ./wazero-host
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hosts/adapter"
)

// begin is the time at which every world begins.
const begin = 1767225600 * int64(1e9)

// features are those that the host has.
var features = []string{"awareness", "requests", "timers", "tools"}

// waiting is a delivery that waits; asked is the number of the request that it is, or 0.
type waiting struct {
	to    *creature
	q     adapter.Request
	asked uint64
}

// asked is a request that has no answer yet.
type asked struct {
	by       *creature
	tag, due int64
}

// world holds creatures, a clock, and the deliveries that wait.
type world struct {
	runtime   wazero.Runtime
	provided  map[string]signature // by module and name
	creatures map[string]*creature
	order     []*creature
	queue     []waiting
	open      map[uint64]asked
	now       int64
	ids       uint64
}

func newWorld(ctx context.Context) (*world, error) {
	w := &world{provided: map[string]signature{}, creatures: map[string]*creature{}, open: map[uint64]asked{}, now: begin, ids: 1e6}
	w.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithCloseOnContextDone(true))
	return w, w.provide(ctx)
}

// turn runs one turn, and sends what it has sent.
func (w *world) turn(ctx context.Context, c *creature, q adapter.Request, request uint64) adapter.Turn {
	w.ids++
	q.Message, q.Attempt = cmp.Or(q.Message, w.ids), cmp.Or(q.Attempt, 1)
	t, err := c.handle(ctx, &q, w.now)
	out := adapter.Turn{Creature: c.Creature, Kind: q.Kind, Alias: q.Alias, Payload: q.Payload, Status: "ok", Logs: t.logs}
	code, answer := "unavailable", []byte("it was handled without a reply")
	switch {
	case err != nil:
		out.Status, out.Text = err.Code.String(), err.Message
		code, answer = out.Status, []byte(out.Text)
	case t.reply != nil:
		code, answer = "ok", t.reply
	}
	if err == nil {
		out.Effects = t.effects()
		w.route(c, t)
	}
	if request != 0 {
		w.answer(request, code, answer)
	}
	return out
}

// effects lists the effects of a turn.
func (t *turn) effects() []adapter.Effect {
	out := slices.Clone(t.sends)
	if t.reply != nil {
		out = append(out, adapter.Effect{Kind: "reply", Payload: t.reply})
	}
	if t.output != nil {
		out = append(out, adapter.Effect{Kind: "output", Payload: t.output})
	}
	for k, v := range t.writes {
		if v == nil {
			out = append(out, adapter.Effect{Kind: "delete", To: k})
		} else {
			out = append(out, adapter.Effect{Kind: "state", To: k, Payload: v})
		}
	}
	for name, x := range t.timers {
		if x == nil {
			out = append(out, adapter.Effect{Kind: "cancel", To: name})
		} else {
			out = append(out, adapter.Effect{Kind: "timer", To: name, Payload: x.payload, MS: x.delay, Period: x.period})
		}
	}
	return out
}

func (w *world) publish(sender *creature, channel string, q adapter.Request) {
	q.Kind = int32(abi.KindMessage)
	for _, c := range w.order {
		for _, e := range c.Listen {
			if e.Channel == channel && c != sender {
				q.Alias = e.Alias
				w.queue = append(w.queue, waiting{to: c, q: q})
			}
		}
	}
}

func (w *world) route(c *creature, t *turn) {
	for _, e := range t.sends {
		w.ids++
		q := adapter.Request{Kind: int32(abi.KindMessage), Payload: e.Payload, Sender: c.Creature, Message: w.ids, Headers: e.Headers}
		switch e.Kind {
		case "send":
			w.publish(c, c.Send[slices.IndexFunc(c.Send, func(x adapter.Edge) bool { return x.Alias == e.To })].Channel, q)
		case "send_to":
			w.queue = append(w.queue, waiting{to: w.creatures[e.To], q: q})
		default:
			q.Kind, q.Deadline = int32(abi.KindRequest), e.MS
			w.open[w.ids] = asked{c, e.Tag, later(w.now, e.MS)}
			c.open++
			w.queue = append(w.queue, waiting{w.creatures[e.To], q, w.ids})
		}
	}
}

func (w *world) answer(request uint64, code string, payload []byte) {
	if a, ok := w.open[request]; ok {
		delete(w.open, request)
		a.by.open--
		w.queue = append(w.queue, waiting{to: a.by, q: adapter.Request{Kind: int32(abi.KindResult), Tag: a.tag, Code: code, Payload: payload}})
	}
}

// fire puts what comes due next into the queue, and moves the clock there. It returns false
// if nothing comes due before end.
func (w *world) fire(end int64) bool {
	var of *creature
	var name string
	var request uint64
	first := end
	due := func(at int64) bool {
		return at < first || at == first && at < math.MaxInt64 && of == nil && request == 0 // the last time is never
	}
	for _, c := range w.order {
		for n, x := range c.timers {
			if due(x.due) || x.due == first && c == of && n < name {
				first, of, name = x.due, c, n
			}
		}
	}
	for id, a := range w.open {
		if due(a.due) || a.due == first && of == nil && id < request {
			first, of, request = a.due, nil, id
		}
	}
	if of == nil && request == 0 {
		w.now = end
		return false
	}
	w.now = max(w.now, first)
	if of == nil {
		w.answer(request, "deadline", []byte("no reply came in time"))
		return true
	}
	x := of.timers[name]
	w.queue = append(w.queue, waiting{to: of, q: adapter.Request{Kind: int32(abi.KindTimer), Name: name, Payload: x.payload}})
	if x.due = later(x.due, x.period); x.period == 0 {
		delete(of.timers, name)
	}
	return true
}

func (w *world) advance(ctx context.Context, ms int64) (turns []adapter.Turn) {
	end := later(w.now, max(ms, 0))
	for {
		for len(w.queue) > 0 {
			next := w.queue[0]
			w.queue = w.queue[1:]
			turns = append(turns, w.turn(ctx, next.to, next.q, next.asked))
		}
		if !w.fire(end) {
			return turns
		}
	}
}

// do answers a request.
func (w *world) do(ctx context.Context, q *adapter.Request) (out adapter.Response) {
	switch q.Op {
	case "hello":
		return adapter.Response{Host: "wazero-interpreter", Version: "1", Features: features}
	case "check":
		_, wrong := w.check(ctx, q.Module)
		for _, e := range wrong {
			out.Problems = append(out.Problems, adapter.Problem{Code: e.Code.String(), Text: e.Message})
		}
		return out
	case "advance":
		return adapter.Response{Turns: w.advance(ctx, q.MS)}
	case "send":
		w.ids++
		q.Message = w.ids
		w.publish(nil, q.Channel, *q)
		return out
	case "load":
		c, err := w.load(ctx, q)
		t := adapter.Turn{Creature: q.Creature, Status: "ok"}
		if err == nil {
			err = c.start(ctx, w.now)
			t.Logs = c.turn.logs
		}
		if err != nil {
			t.Status, t.Text = err.Code.String(), err.Message
		} else {
			w.order = append(slices.DeleteFunc(w.order, func(x *creature) bool { return x.Creature == q.Creature }), c)
			w.creatures[q.Creature] = c
		}
		return adapter.Response{Turns: []adapter.Turn{t}, Instances: 1}
	}
	c := w.creatures[q.Creature]
	if c == nil {
		return adapter.Response{Error: fmt.Sprintf("there is no creature %q", q.Creature)}
	}
	switch q.Op {
	case "deliver":
		if abi.Kind(q.Kind) == abi.KindTimer {
			delete(c.timers, q.Name)
		}
		out.Turns = []adapter.Turn{w.turn(ctx, c, *q, 0)}
	case "stop":
		t := adapter.Turn{Creature: c.Creature, Status: "ok"}
		if c.turn = (&turn{phase: abi.ExportStop, q: &adapter.Request{}, now: w.now}); c.instance != nil {
			if _, err := c.call(ctx, 1); err != nil {
				t.Status, t.Text = err.Code.String(), err.Message
			}
		}
		t.Logs = c.turn.logs
		out.Turns = []adapter.Turn{t}
		c.discard(ctx)
	case "drop":
		c.discard(ctx)
	default:
		return adapter.Response{Lacks: "the operation " + string(q.Op)}
	}
	out.Instances = c.made
	return out
}

// serve answers requests until they end.
func serve(ctx context.Context, in io.Reader, to io.Writer) error {
	var w *world
	requests, responses := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(to)
	for {
		var q adapter.Request
		if err := requests.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if w == nil || q.Op == "reset" {
			if w != nil {
				_ = w.runtime.Close(ctx) // its creatures are removed in any case
			}
			var err error
			if w, err = newWorld(ctx); err != nil {
				return err
			}
		}
		var a adapter.Response
		if q.Op != "reset" {
			a = w.do(ctx, &q)
		}
		a.ID = q.ID
		if err := responses.Encode(a); err != nil {
			return err
		}
	}
}

func main() {
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
