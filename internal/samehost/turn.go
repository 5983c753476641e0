package samehost

import (
	"bytes"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// entry is a call of a turn and its answer.
type entry struct {
	call  string
	bytes []byte
	code  abi.Code
	n     int64
	ok    bool
	pages [][]byte
}

// A turn keeps the calls of the first engine with their answers, and gives the same answers
// to the calls of another.
type turn struct {
	real       abi.Turn // of the first engine; nil for others
	log        []*entry
	at         int    // the next entry of the log, for others
	difference string // the first one
}

var _ abi.Turn = (*turn)(nil)

// ask answers a call. Calls of the first engine are kept before they are made, because pages
// of a list may end the guest.
func (t *turn) ask(call string, do func(*entry)) *entry {
	if t.real != nil {
		e := &entry{call: call}
		t.log = append(t.log, e)
		do(e)
		e.bytes = bytes.Clone(e.bytes)
		return e
	}
	if t.at == len(t.log) {
		t.differ("after %d calls, only one calls %s", t.at, call)
		return &entry{code: abi.Stopped, n: int64(abi.Stopped.Status())}
	}
	e := t.log[t.at]
	t.at++
	if e.call != call {
		t.differ("after %d calls, one calls %s and the other %s", t.at-1, e.call, call)
	}
	return e
}

func (t *turn) differ(format string, args ...any) {
	if t.difference == "" {
		t.difference = fmt.Sprintf(format, args...)
	}
}

// code is ask for calls that return a code.
func (t *turn) code(call string, do func() abi.Code) abi.Code {
	return t.ask(call, func(e *entry) { e.code = do() }).code
}

// Source implements [abi.Turn], as do the other methods.
func (t *turn) Source(s abi.Source) ([]byte, abi.Code) {
	e := t.ask(fmt.Sprintf("source %d", s), func(e *entry) { e.bytes, e.code = t.real.Source(s) })
	return e.bytes, e.code
}

func (t *turn) HasFeature(f abi.Feature) bool {
	return t.ask(fmt.Sprintf("feature %d", f), func(e *entry) { e.ok = t.real.HasFeature(f) }).ok
}

func (t *turn) LastError() string {
	return string(t.ask("last error", func(e *entry) { e.bytes = []byte(t.real.LastError()) }).bytes)
}

func (t *turn) Config(key []byte) ([]byte, abi.Code) {
	e := t.ask(fmt.Sprintf("config %q", key), func(e *entry) { e.bytes, e.code = t.real.Config(key) })
	return e.bytes, e.code
}

func (t *turn) Channel(alias []byte) int32 {
	return int32(t.ask(fmt.Sprintf("channel %q", alias), func(e *entry) { e.n = int64(t.real.Channel(alias)) }).n)
}

func (t *turn) Send(channel int32, payload, headers []byte) int32 {
	return int32(t.ask(fmt.Sprintf("send %d %q %q", channel, payload, headers), func(e *entry) { e.n = int64(t.real.Send(channel, payload, headers)) }).n)
}

func (t *turn) SendTo(to, payload []byte) abi.Code {
	return t.code(fmt.Sprintf("send_to %q %q", to, payload), func() abi.Code { return t.real.SendTo(to, payload) })
}

func (t *turn) Request(to, payload []byte, deadline time.Duration, tag int64) abi.Code {
	return t.code(fmt.Sprintf("request %q %q %v %d", to, payload, deadline, tag), func() abi.Code { return t.real.Request(to, payload, deadline, tag) })
}

func (t *turn) Reply(payload []byte) abi.Code {
	return t.code(fmt.Sprintf("reply %q", payload), func() abi.Code { return t.real.Reply(payload) })
}

func (t *turn) Output(payload []byte) abi.Code {
	return t.code(fmt.Sprintf("output %q", payload), func() abi.Code { return t.real.Output(payload) })
}

func (t *turn) StateGet(key []byte) ([]byte, abi.Code) {
	e := t.ask(fmt.Sprintf("state_get %q", key), func(e *entry) { e.bytes, e.code = t.real.StateGet(key) })
	return e.bytes, e.code
}

func (t *turn) StateSet(key, value []byte) abi.Code {
	return t.code(fmt.Sprintf("state_set %q %q", key, value), func() abi.Code { return t.real.StateSet(key, value) })
}

func (t *turn) StateDelete(key []byte) (bool, abi.Code) {
	e := t.ask(fmt.Sprintf("state_delete %q", key), func(e *entry) { e.ok, e.code = t.real.StateDelete(key) })
	return e.ok, e.code
}

func (t *turn) StateList(prefix []byte, page func(keys []byte)) abi.Code {
	e := t.ask(fmt.Sprintf("state_list %q", prefix), func(e *entry) {
		e.code = t.real.StateList(prefix, func(keys []byte) {
			e.pages = append(e.pages, bytes.Clone(keys))
			page(keys)
		})
	})
	if t.real == nil {
		for _, keys := range e.pages {
			page(keys)
		}
	}
	return e.code
}

func (t *turn) TimerSet(name []byte, delay, period time.Duration, payload []byte) abi.Code {
	return t.code(fmt.Sprintf("timer_set %q %v %v %q", name, delay, period, payload), func() abi.Code { return t.real.TimerSet(name, delay, period, payload) })
}

func (t *turn) TimerCancel(name []byte) (bool, abi.Code) {
	e := t.ask(fmt.Sprintf("timer_cancel %q", name), func(e *entry) { e.ok, e.code = t.real.TimerCancel(name) })
	return e.ok, e.code
}

func (t *turn) Tool(name, args []byte) ([]byte, abi.Code) {
	e := t.ask(fmt.Sprintf("tool %q %q", name, args), func(e *entry) { e.bytes, e.code = t.real.Tool(name, args) })
	return e.bytes, e.code
}

func (t *turn) HTTP(request, body []byte, tag int64) abi.Code {
	return t.code(fmt.Sprintf("http %q %q %d", request, body, tag), func() abi.Code { return t.real.HTTP(request, body, tag) })
}

func (t *turn) Log(level abi.Level, text []byte) abi.Code {
	return t.code(fmt.Sprintf("log %d %q", level, text), func() abi.Code { return t.real.Log(level, text) })
}

func (t *turn) Now() int64 {
	return t.ask("now", func(e *entry) { e.n = t.real.Now() }).n
}

func (t *turn) Random(p []byte) {
	copy(p, t.ask(fmt.Sprintf("random %d", len(p)), func(e *entry) {
		t.real.Random(p)
		e.bytes = p
	}).bytes)
}
