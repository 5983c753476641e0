package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

const (
	wells       = 4 // channels, each with a hearer that runs and one that is stopped most of the time
	visitors    = 3 // hearers that listen on one well or several for a while, which merges and splits graphs
	backlogName = "backlogs"
)

// lagging is the order for a victim that lets backlogs grow.
type lagging struct {
	Seed   uint64
	Retain int64 // how many events are kept; 0: all
	Steps  int
	Finish bool // in the end all creatures are started, and receive everything
}

// edging is an edge of a hearer that is turned on or off, and the number of messages in the
// well at that time.
type edging struct {
	Hearer string
	Well   int
	On     bool
	Head   uint64
}

func wellName(i int) string    { return fmt.Sprint("well-", i) }
func dwellerOf(i int) string   { return fmt.Sprint("dweller-", i) }
func sleeperOf(i int) string   { return fmt.Sprint("sleeper-", i) }
func visitorName(i int) string { return fmt.Sprint("visitor-", i) }

// hearers returns the names of all hearers.
func hearers() (out []string) {
	for i := range wells {
		out = append(out, dwellerOf(i), sleeperOf(i))
	}
	for i := range visitors {
		out = append(out, visitorName(i))
	}
	return out
}

// hearing is a host whose only guest notes what it hears, in order: for every well the runs of
// numbers, such as 1-20,31-45.
type hearing struct{}

func (hearing) Compile(context.Context, []byte) (abi.Module, error) { return hearing{}, nil }
func (hearing) Info() *abi.ModuleInfo                               { return &abi.ModuleInfo{SHA256: "of a hearer"} }
func (hearing) Close(context.Context) error                         { return nil }
func (hearing) Stop(context.Context, abi.Turn) error                { return nil }
func (hearing) MemoryBytes() int64                                  { return 0 }
func (hearing) FuelUsed() int64                                     { return -1 }
func (hearing) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return hearing{}, nil
}

func (hearing) Handle(_ context.Context, t abi.Turn, kind abi.Kind, _ int) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	var well int
	var n uint64
	if _, err := fmt.Sscanf(string(payload), "%d %d ", &well, &n); err != nil {
		return err
	}
	key := []byte(wellName(well))
	before, _ := t.StateGet(key)
	if code := t.StateSet(key, []byte(extended(string(before), n))); code != abi.OK {
		return &abi.Error{Code: code, Message: t.LastError()}
	}
	return nil
}

// extended adds a number to runs of numbers.
func extended(runs string, n uint64) string {
	rest, last := "", runs
	if i := strings.LastIndexByte(runs, ','); i >= 0 {
		rest, last = runs[:i+1], runs[i+1:]
	}
	if first, end, _ := strings.Cut(last, "-"); runs != "" && end == strconv.FormatUint(n-1, 10) {
		return rest + first + "-" + strconv.FormatUint(n, 10)
	}
	if runs != "" {
		runs += ","
	}
	return fmt.Sprintf("%s%d-%d", runs, n, n)
}

// backlogs is the deployment that the program begins with.
func backlogs() *deploy.Deployment {
	durability := journal.Normal
	out := &deploy.Deployment{Name: backlogName, Session: deploy.SessionSettings{Durability: &durability}}
	for i := range wells {
		out.Channels = append(out.Channels, deploy.ChannelSpec{Address: "channel." + wellName(i), Name: wellName(i)})
	}
	for _, name := range hearers() {
		spec := deploy.CreatureSpec{Address: "creature." + name, Name: name, Module: "hearer"}
		var i int
		if _, err := fmt.Sscanf(name[strings.IndexByte(name, '-'):], "-%d", &i); err == nil && !strings.HasPrefix(name, "visitor") {
			spec.Listen = []deploy.WireSpec{{Channel: "channel." + wellName(i), Alias: wellName(i)}}
		}
		spec.Stopped = strings.HasPrefix(name, "sleeper")
		out.Creatures = append(out.Creatures, spec)
	}
	return out
}

// backlogVictim continues with a directory until it is killed or has taken its steps.
type backlogVictim struct {
	*engine.Engine
	d        *Directory
	random   *rand.Rand
	channels [wells]journal.ChannelID
	ids      map[string]journal.CreatureID
	heads    [wells]uint64
}

// run resumes the existing sessions. Histories are copied as soon as possible, so that steps
// happen during the copying. Afterwards, all creatures may be started.
func (l *lagging) run(ctx context.Context, dir string, options Options) error {
	options.Retain.Events = l.Retain
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	d.hydrator.hurry(1)
	v := &backlogVictim{d: d, random: rand.New(rand.NewPCG(l.Seed, 18)), ids: map[string]journal.CreatureID{}}
	v.Engine, err = engine.New(ctx, engine.Options{
		Host: hearing{}, Storage: d, Durability: journal.Normal, Workers: 2,
		Load: func(_ context.Context, module string) ([]byte, error) { return []byte(module), nil },
	})
	if err != nil {
		return err
	}
	if err := v.resume(ctx); err != nil {
		return err
	}
	for range l.Steps {
		if err := v.step(ctx); err != nil {
			return err
		}
	}
	if l.Finish {
		if err := v.finish(ctx); err != nil {
			return err
		}
	}
	d.hydrator.hurry(-1)
	return errors.Join(v.Close(ctx), d.Close())
}

// resume restores the existing sessions, or creates the first one.
func (v *backlogVictim) resume(ctx context.Context) error {
	if len(v.Saved()) == 0 {
		if _, err := v.Apply(ctx, backlogs()); err != nil {
			return err
		}
	} else if _, problems, err := v.Restore(ctx); err != nil || len(problems) > 0 {
		return errors.Join(append(problems, err)...)
	}
	for i := range wells {
		id, err := v.FindChannel("", wellName(i))
		if err != nil {
			return err
		}
		known, err := v.Producers(id)
		if err != nil {
			return err
		}
		v.channels[i], v.heads[i] = id, known["test"]
	}
	for _, name := range hearers() {
		id, err := v.FindCreature("", name)
		if err != nil {
			return err
		}
		v.ids[name] = id
	}
	tellOf("resumed", v.heads)
	return nil
}

func (v *backlogVictim) step(ctx context.Context) error {
	names := hearers()
	name := names[v.random.IntN(len(names))]
	switch n := v.random.IntN(20); {
	case n < 3: // a creature is added and removed there too, and leaves a backlog
		return v.edge(ctx, name, v.random.IntN(wells))
	case n < 6:
		return v.edge(ctx, visitorName(v.random.IntN(visitors)), v.random.IntN(wells))
	case n < 8:
		return v.stopped(ctx, name, v.random.IntN(4) > 0)
	case n == 8:
		return v.prune(ctx)
	case n == 9:
		return v.d.Settle(ctx)
	}
	return v.feed(ctx, v.random.IntN(wells), 5+v.random.IntN(60))
}

// feed sends messages to a well. Now and then it waits for one.
func (v *backlogVictim) feed(ctx context.Context, well, n int) error {
	for range n {
		v.heads[well]++
		n := v.heads[well]
		durable := n%16 == 0
		payload := fmt.Appendf(nil, "%d %d %s", well, n, strings.Repeat("x", v.random.IntN(300)))
		sent, err := v.Send(ctx, v.channels[well], engine.Outgoing{Payload: payload, Producer: "test", Offset: n, Durable: durable})
		if err != nil {
			return err
		}
		if sent.Duplicate {
			return fmt.Errorf("message %d of well %d was reported as a duplicate", n, well)
		}
		if durable {
			tell(progress{Word: "ok", Seq: n, At: int64(well)})
		}
	}
	return nil
}

// edge turns the edge of a hearer on, or off again.
func (v *backlogVictim) edge(ctx context.Context, name string, well int) error {
	on, err := v.listens(name, well)
	if err != nil {
		return err
	}
	tellOf("edging", edging{name, well, !on, v.heads[well]})
	op := topology.SetEdge{Creature: v.ids[name], Channel: v.channels[well], Direction: journal.Listen, On: !on}
	var batch *engine.Batch
	err = v.Batch(ctx, func(b *engine.Batch) error {
		batch = b
		_, err := b.Do(ctx, op)
		return err
	})
	if err == nil {
		err = batch.Wait(ctx)
	}
	if err == nil {
		tell(progress{Word: "edged"})
	}
	return err
}

func (v *backlogVictim) listens(name string, well int) (bool, error) {
	graphs, err := v.Status("")
	for _, g := range graphs {
		for _, c := range g.Creatures {
			if c.ID == v.ids[name] {
				return slices.Contains(c.Listen, v.channels[well]), err
			}
		}
	}
	return false, errors.Join(err, fmt.Errorf("%s does not exist", name))
}

func (v *backlogVictim) stopped(ctx context.Context, name string, stopped bool) error {
	_, err := v.Change(ctx, topology.SetStopped{ID: v.ids[name], Stopped: stopped})
	return err
}

// prune prunes the history of a graph.
func (v *backlogVictim) prune(ctx context.Context) error {
	graphs, err := v.Status("")
	if err != nil {
		return err
	}
	_, err = v.d.Prune(ctx, graphs[v.random.IntN(len(graphs))].Session, Retention{Events: int64(1 + v.random.IntN(200))})
	return err
}

// finish starts all creatures, and waits until they have received every message.
func (v *backlogVictim) finish(ctx context.Context) error {
	for _, name := range hearers() {
		if err := v.stopped(ctx, name, false); err != nil {
			return err
		}
	}
	return errors.Join(v.WaitIdle(ctx), v.d.Settle(ctx))
}
