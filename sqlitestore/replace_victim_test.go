package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// replacing is the order for a victim that replaces modules while messages arrive.
type replacing struct {
	Life int    // the names of its modules begin with it
	Goal uint64 // after this many messages, the life ends
}

// The creatures: the asker requests a reply to each message from the singer, which hears
// the messages too.
const (
	singer   = "singer"
	asker    = "asker"
	timerGap = 4 // the singer sets a timer for one in this many messages
)

// replaced are the creatures whose modules are replaced.
var replaced = [2]string{singer, asker}

// voice is a host whose guests output which module they are. The module's bytes are its name:
// the creature, and the version.
type voice struct {
	hearing
	name string
}

func (v voice) Compile(_ context.Context, wasm []byte) (abi.Module, error) {
	return voice{name: string(wasm)}, nil
}
func (v voice) Info() *abi.ModuleInfo { return &abi.ModuleInfo{SHA256: sumOf(v.name)} }
func (v voice) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return v, nil
}

func sumOf(module string) string { return "sum of " + module }

func (v voice) Handle(_ context.Context, t abi.Turn, kind abi.Kind, _ int) error {
	payload, _ := t.Source(abi.SourcePayload)
	var n uint64
	if _, err := fmt.Sscan(string(payload), &n); err != nil {
		return nil // a start has no number
	}
	do := func(codes ...abi.Code) error {
		for _, code := range codes {
			if code != abi.OK {
				return &abi.Error{Code: code, Message: t.LastError()}
			}
		}
		return nil
	}
	codes := []abi.Code{noteRun(t, kind, n), t.Output(fmt.Appendf(nil, "%s %d", v.name, n))}
	switch isSinger := strings.HasPrefix(v.name, singer); {
	case kind == abi.KindMessage && !isSinger:
		codes = append(codes, t.Request([]byte(singer), payload, time.Hour, int64(n)))
	case kind == abi.KindMessage && n%timerGap == 0:
		codes = append(codes, t.TimerSet(payload, time.Duration(n%16)*time.Millisecond, 0, payload))
	case kind == abi.KindRequest:
		codes = append(codes, t.Reply(payload))
	}
	return do(codes...)
}

// noteRun counts how often each number was delivered.
func noteRun(t abi.Turn, kind abi.Kind, n uint64) abi.Code {
	key := fmt.Appendf(nil, "%d %d", kind, n)
	before, _ := t.StateGet(key)
	return t.StateSet(key, append(before, '|'))
}

// run continues with a directory, and replaces modules as long as messages arrive.
func (r *replacing) run(ctx context.Context, dir string, options Options) error {
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, engine.Options{
		Host: voice{}, Storage: d, Durability: journal.Normal, Workers: 2,
		Load: func(_ context.Context, module string) ([]byte, error) { return []byte(module), nil },
	})
	if err != nil {
		return err
	}
	if err := resumeVoices(ctx, e); err != nil {
		return err
	}
	var fed atomic.Bool
	feeding := make(chan error, 1)
	go func() {
		defer fed.Store(true)
		feeding <- r.feed(ctx, e)
	}()
	for i := 0; !fed.Load() && err == nil; i++ {
		err = r.replace(ctx, e, i)
	}
	return errors.Join(err, <-feeding, e.WaitIdle(ctx), d.Settle(ctx), e.Close(ctx), d.Close())
}

// resumeVoices restores the session, or creates it.
func resumeVoices(ctx context.Context, e *engine.Engine) error {
	if len(e.Saved()) > 0 {
		_, problems, err := e.Restore(ctx)
		return errors.Join(append(problems, err)...)
	}
	durability := journal.Normal
	out := &deploy.Deployment{
		Name: "choir", Session: deploy.SessionSettings{Durability: &durability},
		Channels: []deploy.ChannelSpec{{Address: "channel.lines", Name: "lines"}},
	}
	for _, name := range replaced {
		out.Creatures = append(out.Creatures, deploy.CreatureSpec{
			Address: "creature." + name, Name: name, Module: name + " 0 0", Limits: abi.Limits{Deadline: time.Minute},
			Listen: []deploy.WireSpec{{Channel: "channel.lines", Alias: "lines"}},
		})
	}
	_, err := e.Apply(ctx, out)
	return err
}

// feed sends the messages that the channel does not have yet, and a few before them again.
func (r *replacing) feed(ctx context.Context, e *engine.Engine) error {
	lines, err := e.FindChannel("", "lines")
	if err != nil {
		return err
	}
	known, err := e.Producers(lines)
	if err != nil {
		return err
	}
	for n := max(known["test"], 2) - 1; n <= r.Goal; n++ {
		durable := n%resumeDurable == 0
		if _, err := e.Send(ctx, lines, engine.Outgoing{Payload: fmt.Append(nil, n), Producer: "test", Offset: n, Durable: durable}); err != nil {
			return err
		}
		if durable {
			tell(progress{Word: "ok", Seq: n})
		}
	}
	return nil
}

// replace replaces the module of a creature. Every other time, it does not wait until that is
// durable.
func (r *replacing) replace(ctx context.Context, e *engine.Engine, i int) error {
	name := replaced[i%len(replaced)]
	id, err := e.FindCreature("", name)
	if err != nil {
		return err
	}
	module := fmt.Sprint(name, " ", r.Life, " ", i)
	tell(progress{Word: "replacing", Text: module})
	out, err := e.ReplaceModule(ctx, id, engine.Replacement{Module: module})
	if err != nil || i%4 > 1 {
		return err
	}
	if err := out.Wait(ctx); err != nil {
		return err
	}
	tell(progress{Word: "replaced", Text: module})
	return nil
}
