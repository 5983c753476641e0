package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// editing is the order for a victim that runs creatures that edit their graphs.
type editing struct {
	Cache string // of compiled modules
	Seed  uint64 // of the orders; the same for all lives
	Goal  uint64 // after this many orders of each side, the life ends
}

// said is a report of the victim, as a line of JSON.
type said struct {
	Word    string // applying, applied, graph, answer, done, error
	Side    string // applying, applied, answer
	ID      string // answer: of the event
	Payload string // answer
	Graph   []string
	Text    string
}

func say(line said) { _ = json.NewEncoder(os.Stdout).Encode(line) }

// sides are the two deployments, each with an editor of its own.
var sides = [2]string{"left", "right"}

const (
	handSpecies = "hand"
	mostHands   = 4 // of each deployment at a time
	mostOrders  = 6 // of a side that are under way
)

// theOther returns the side that the editor of a side connects to.
func theOther(side string) string {
	if side == sides[0] {
		return sides[1]
	}
	return sides[0]
}

// editors is the deployment of a side: an editor that takes orders, and a relay. The relay
// passes on the answers of the editor, and has the gate, through which creatures of the other
// side join.
func editors(side string) *deploy.Deployment {
	on := func(names ...string) (list []deploy.WireSpec) {
		for _, name := range names {
			list = append(list, deploy.WireSpec{Channel: "channel." + name, Alias: side + "-" + name})
		}
		return list
	}
	limits := abi.Limits{Deadline: time.Minute} // nothing here may depend on how busy the machine is
	d := &deploy.Deployment{
		Name: side, Session: deploy.SessionSettings{AllowMerge: true},
		Creatures: []deploy.CreatureSpec{
			{Address: "creature.editor", Name: side + "-editor", Module: "operator", Limits: limits, Privileged: true, Listen: on("orders"), Send: on("answers")},
			{Address: "creature.relay", Name: side + "-relay", Module: "relay", Limits: limits, Listen: on("answers", "gate"), Send: on("heard")},
		},
		Species: []deploy.SpeciesSpec{{
			Name: handSpecies, Spawnable: mostHands,
			Spec: deploy.CreatureSpec{Module: "tally", Limits: limits, Config: json.RawMessage(`{"key": "json:id"}`)},
		}},
	}
	for _, name := range []string{"orders", "answers", "gate", "heard"} {
		d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel." + name, Name: side + "-" + name})
	}
	return d
}

// gated is a host whose guests handle nothing until the gate is open.
type gated struct {
	abi.Host
	open <-chan struct{}
}

func (h gated) Compile(ctx context.Context, wasm []byte) (abi.Module, error) {
	m, err := h.Host.Compile(ctx, wasm)
	return gatedModule{m, h.open}, err
}

type gatedModule struct {
	abi.Module
	open <-chan struct{}
}

func (m gatedModule) Instantiate(ctx context.Context, limits *abi.Limits, init abi.Turn) (abi.Instance, error) {
	i, err := m.Module.Instantiate(ctx, limits, init)
	return gatedInstance{i, m.open}, err
}

type gatedInstance struct {
	abi.Instance
	open <-chan struct{}
}

func (i gatedInstance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	<-i.open
	return i.Instance.Handle(ctx, t, kind, size)
}

// editingVictim continues with the session of a directory, and gives orders to its editors
// until it is killed or they have reached the goal.
type editingVictim struct {
	editing
	*engine.Engine
	channels map[string]journal.ChannelID // by name
	ahead    map[string]chan struct{}     // by side: a token for each order under way
}

func editAway(o order) error {
	ctx := context.Background()
	durability, _ := journal.ParseDurability(o.Durability)
	losevfs.Mount(o.Dir, 0) // so that SQLite does not sync either
	d, err := Open(ctx, o.Dir, smallChunks(dieAt(o.Point, o.Pass)))
	if err != nil {
		return err
	}
	h, err := host.New(ctx, host.Options{CacheDir: o.Editing.Cache, CacheKey: o.Editing.Cache + ".key"})
	if err != nil {
		return err
	}
	gate := make(chan struct{})
	v := &editingVictim{editing: *o.Editing, channels: map[string]journal.ChannelID{}, ahead: map[string]chan struct{}{}}
	v.Engine, err = engine.New(ctx, engine.Options{
		Host: gated{h, gate}, Storage: d, Durability: durability, FreshInstances: fresh.Instances(), Workers: 2,
		Load: func(_ context.Context, module string) ([]byte, error) { return plugins.Get(module) },
	})
	if err != nil {
		return err
	}
	if err := v.resume(ctx); err != nil {
		return err
	}
	close(gate)
	if err := v.work(ctx); err != nil {
		return err
	}
	err = errors.Join(v.sayGraph(), d.Settle(ctx), v.Close(ctx), d.Close(), h.Close(ctx))
	if err == nil {
		say(said{Word: "done"})
	}
	return err
}

// resume restores what was saved, including the hands, and then applies both deployments, which
// undoes what editors have done to other creatures and channels.
func (v *editingVictim) resume(ctx context.Context) error {
	_, problems, err := v.Restore(ctx)
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	if err := v.sayGraph(); err != nil {
		return err
	}
	for _, side := range sides {
		say(said{Word: "applying", Side: side})
		applied, err := v.Apply(ctx, editors(side))
		if err != nil {
			return err
		}
		say(said{Word: "applied", Side: side})
		for address, id := range applied.Channels {
			v.channels[side+"-"+address[len("channel."):]] = id
		}
	}
	return v.sayGraph()
}

func (v *editingVictim) sayGraph() error {
	graphs, err := v.Status("")
	if err == nil {
		say(said{Word: "graph", Graph: linesOfStatus(graphs)})
	}
	return err
}

// work feeds and reads both sides at once.
func (v *editingVictim) work(ctx context.Context) error {
	var all sync.WaitGroup
	results := make(chan error, 2*len(sides))
	for _, side := range sides {
		v.ahead[side] = make(chan struct{}, mostOrders)
	}
	for _, side := range sides {
		r, err := v.Read(v.channels[side+"-answers"], "test", engine.ReaderOptions{FromStart: true})
		if err != nil {
			return err
		}
		defer r.Close()
		all.Go(func() { results <- v.feed(ctx, side) })
		all.Go(func() { results <- v.listen(ctx, side, r) })
	}
	all.Wait()
	close(results)
	var errs []error
	for err := range results {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, v.WaitIdle(ctx))...)
}

// feed sends the orders of a side. It begins a little before the place that the session has
// reached, as a producer does that does not know that place exactly.
func (v *editingVictim) feed(ctx context.Context, side string) error {
	channel := v.channels[side+"-orders"]
	known, err := v.Producers(channel)
	if err != nil {
		return err
	}
	mark := known["test"]
	for n := mark + 1 - min(mark, 3); n <= v.Goal; n++ {
		if n > mark {
			v.ahead[side] <- struct{}{}
		}
		sent, err := v.Send(ctx, channel, engine.Outgoing{
			Payload: orderOf(v.Seed, side, n, v.channels[theOther(side)+"-gate"]), Producer: "test", Offset: n, Durable: n%4 == 0,
		})
		if err != nil {
			return err
		}
		if sent.Duplicate != (n <= mark) {
			return fmt.Errorf("order %d of %s: duplicate %t, but the session has %d", n, side, sent.Duplicate, mark)
		}
	}
	return nil
}

// listen reports the answers of the editor of a side, one to each order. A reader gets nothing
// that is not yet durable as promised.
func (v *editingVictim) listen(ctx context.Context, side string, r *engine.Reader) error {
	for n := uint64(0); n < v.Goal; {
		in, err := r.Next(ctx)
		if err != nil {
			return err
		}
		say(said{Word: "answer", Side: side, ID: in.ID.String(), Payload: string(in.Payload)})
		n = in.Seq
		r.Ack(n)
		select {
		case <-v.ahead[side]:
		default: // an earlier life has sent the order
		}
	}
	return nil
}
