package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/sqlitestore"
)

//go:embed soak.hcl clock.js
var files embed.FS

// limit says how long the loads of a life run: until a time, or for a number of rounds.
type limit struct {
	until  time.Time
	rounds int
}

func (l limit) more(round int) bool {
	if l.rounds > 0 {
		return round < l.rounds
	}
	return time.Now().Before(l.until)
}

// soak is what all lives have in common.
type soak struct {
	options terrarium.Options
	pairs   int
	pause   time.Duration // between two bursts of a lane
	seed    uint64
	books   *books
	cursor  journal.EventCursor // of the subscriber that misses nothing
	sampler *sampler
}

// burst is how many messages a lane sends in a row, and ahead is how many its reader may be
// behind.
const (
	burst = 20
	ahead = 1000
)

// life is one terrarium from opening to closing.
type life struct {
	*soak
	t       *terrarium.Terrarium
	applied *terrarium.Applied
	limit   limit
	random  func(load string) *rand.Rand
}

// live opens the terrarium, runs all loads until the limit, waits until nothing is on its way,
// compares the records and closes it. It returns errors of the terrarium; differences are
// noted in the records.
func (s *soak) live(ctx context.Context, number int, l limit) (err error) {
	t, err := terrarium.New(ctx, s.options)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, t.Close(ctx))
	}()
	applied, err := s.open(ctx, t)
	if err != nil {
		return err
	}
	life := &life{soak: s, t: t, applied: applied, limit: l, random: func(load string) *rand.Rand {
		return rand.New(rand.NewPCG(s.seed+uint64(number), uint64(len(load))<<32|uint64(load[0])))
	}}
	s.sampler.watch(t, life.asked())
	defer s.sampler.unwatch()
	return life.run(ctx)
}

// open applies the recipe, the first time, or resumes the session.
func (s *soak) open(ctx context.Context, t *terrarium.Terrarium) (*terrarium.Applied, error) {
	o := terrarium.RecipeOptions{Vars: map[string]string{"pairs": strconv.Itoa(s.pairs)}}
	if len(t.Saved()) == 0 {
		return t.Apply(ctx, "fs:/soak.hcl", o)
	}
	resumed, err := t.Resume(ctx, terrarium.ResumeOptions{RecipeOptions: o})
	if err != nil {
		return nil, err
	}
	if len(resumed.Applied) != 1 || len(resumed.Problems) > 0 {
		return nil, fmt.Errorf("resumed %d recipes, with the problems %w", len(resumed.Applied), errors.Join(resumed.Problems...))
	}
	return resumed.Applied[0], nil
}

func (s *soak) lanes() []string {
	var all []string
	for n := range 2 * s.pairs {
		all = append(all, fmt.Sprintf("%02d", n))
	}
	return all
}

func (l *life) creature(kind, lane string) terrarium.CreatureID {
	return l.applied.Creatures[fmt.Sprintf("creature.%s[%q]", kind, lane)]
}

func (l *life) channel(name, lane string) terrarium.ChannelID {
	return l.applied.Channels[fmt.Sprintf("channel.%s[%q]", name, lane)]
}

func (l *life) asked() terrarium.CreatureID { return l.applied.Creatures["creature.asked"] }

// run runs the loads. Readers continue until the other loads have ended and everything is
// read.
func (l *life) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var loads, readers sync.WaitGroup
	start := func(group *sync.WaitGroup, name string, f func(context.Context) error) {
		group.Go(func() {
			if err := f(ctx); err != nil && context.Cause(ctx) == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	for _, lane := range l.lanes() {
		start(&loads, "writer "+lane, func(ctx context.Context) error { return l.write(ctx, lane) })
		for _, name := range []string{"out", "ticks"} {
			start(&readers, "reader of "+name+" "+lane, func(context.Context) error { return l.read(reading, name, lane) })
		}
	}
	for n := range l.pairs {
		start(&loads, fmt.Sprint("pair ", n), func(ctx context.Context) error { return l.joinAndPart(ctx, n) })
	}
	for name, f := range map[string]func(context.Context) error{
		"spawner": l.spawn, "replacer": l.replace, "slow subscriber": l.fallBehind, "searcher": l.look,
	} {
		start(&loads, name, f)
	}
	start(&readers, "subscriber", func(context.Context) error { return l.follow(reading) })
	loads.Wait()
	err := context.Cause(ctx)
	if err == nil {
		err = l.settle(ctx)
	}
	stop()
	readers.Wait()
	if err != nil {
		return err
	}
	l.books.balance()
	return l.verify(ctx)
}

// settle waits until the readers and the subscriber have everything.
func (l *life) settle(ctx context.Context) error {
	for _, lane := range l.lanes() {
		for l.books.behind(lane) > 0 {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("lane %s: %d messages are on their way: %w", lane, l.books.behind(lane), err)
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// write sends the numbers of a lane. One in a hundred is sent twice, with the same offset.
func (l *life) write(ctx context.Context, lane string) error {
	random := l.random("write" + lane)
	for round := 0; l.limit.more(round); round++ {
		for range burst {
			n := l.books.next(lane)
			out := terrarium.Outgoing{Payload: fmt.Appendf(nil, "%s:%d", lane, n), Producer: "soak", Offset: n, Durable: n%burst == 0}
			if _, err := l.t.Send(ctx, l.channel("in", lane), out); err != nil {
				return err
			}
			l.books.send(lane, n)
			if random.IntN(100) == 0 {
				if sent, err := l.t.Send(ctx, l.channel("in", lane), out); err != nil {
					return err
				} else if !sent.Duplicate {
					l.books.problem("lane %s: number %d was accepted twice", lane, n)
				}
			}
		}
		for wait := true; wait; wait = l.books.behind(lane) > ahead {
			if err := pause(ctx, l.soak.pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a channel of a lane until ctx ends.
func (l *life) read(ctx context.Context, name, lane string) error {
	r, err := l.t.Read(l.channel(name, lane), "soak", terrarium.ReaderOptions{FromStart: true, Buffer: 64})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		in, err := r.Next(ctx)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		from, number, found := strings.Cut(string(in.Payload), ":")
		if !found {
			from, number = lane, from // a tick
		}
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			l.books.problem("%s of lane %s: %q arrived", name, lane, in.Payload)
		}
		channel := lane
		if name != "out" {
			channel = name + " " + lane
		}
		l.books.arrive(channel, from, n, from == lane)
		r.Ack(in.Seq)
	}
}

// joinAndPart connects the lanes of a pair, so that their graphs merge, and disconnects them
// again.
func (l *life) joinAndPart(ctx context.Context, pair int) error {
	lanes := l.lanes()[2*pair : 2*pair+2]
	from, to := l.creature("lane", lanes[0]), l.creature("lane", lanes[1])
	random := l.random("pair" + lanes[0])
	for round := 0; l.limit.more(round); round++ {
		out, err := l.t.Change(ctx, topology.Connect{From: from, To: to, Name: "bridge-" + lanes[0]})
		if err != nil {
			return err
		}
		l.books.did("merges")
		if err := pause(ctx, time.Duration(random.IntN(20))*time.Millisecond); err != nil {
			return err
		}
		if random.IntN(10) == 0 && l.limit.until.IsZero() == (round+1 >= l.limit.rounds) {
			continue // the lanes may still be connected when the terrarium closes
		}
		if _, err := l.t.Change(ctx, topology.Disconnect{From: from, To: to, Channel: out[0].Channel}); err != nil {
			return err
		}
		if _, err := l.t.RemoveChannel(ctx, out[0].Channel); err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
		l.books.did("splits")
		if err := pause(ctx, time.Duration(random.IntN(200))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// spawn adds creatures to graphs, asks them, and removes them.
func (l *life) spawn(ctx context.Context) error {
	random := l.random("spawn")
	for round := 0; l.limit.more(round); round++ {
		lane := l.lanes()[random.IntN(2*l.pairs)]
		added, err := l.t.AddCreature(ctx, deploy.CreatureSpec{Name: "guest", Module: "builtin:tally",
			Listen: []deploy.WireSpec{{Channel: string(l.channel("out", lane))}}, Join: l.graph(l.creature("lane", lane))})
		switch abi.CodeOf(err) {
		case abi.OK:
		case abi.NotFound, abi.Conflict:
			continue // the graph has merged or split meanwhile
		default:
			return err
		}
		if reply, err := l.t.Request(ctx, added.Creature, terrarium.Outgoing{}, 0); err != nil {
			return err
		} else if !strings.Contains(string(reply), `"total"`) {
			l.books.problem("a guest replied %q", reply)
		}
		if _, err := l.t.RemoveCreature(ctx, added.Creature); err != nil {
			return err
		}
		l.books.did("guests")
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// graph returns the graph that a creature is in now.
func (l *life) graph(id terrarium.CreatureID) terrarium.GraphID {
	all, err := l.t.Status("")
	if err != nil {
		return ""
	}
	for _, g := range all {
		if slices.ContainsFunc(g.Creatures, func(c inspect.CreatureStatus) bool { return c.ID == id }) {
			return g.ID
		}
	}
	return ""
}

// replace replaces the modules of lanes while messages pass, every other time after a check
// of their last turns.
func (l *life) replace(ctx context.Context) error {
	random := l.random("replace")
	for round := 0; l.limit.more(round); round++ {
		lane := l.lanes()[random.IntN(2*l.pairs)]
		if _, err := l.t.ReplaceModule(ctx, l.creature("lane", lane), terrarium.ReplaceOptions{Module: "builtin:echo", Check: round % 2 * 3, Force: true}); err != nil {
			return err
		}
		l.books.did("replacements")
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// follow subscribes to what the lanes send out, and continues after its last cursor. It
// subscribes again from there now and then, and whenever it has fallen behind.
func (l *life) follow(ctx context.Context) error {
	filter := terrarium.Filter{Kinds: []journal.EventKind{journal.EventChannelMessage}}
	for _, lane := range l.lanes() {
		filter.Channels = append(filter.Channels, l.channel("out", lane))
	}
	lane := map[terrarium.ChannelID]string{}
	for _, name := range l.lanes() {
		lane[l.channel("out", name)] = name
	}
	for ctx.Err() == nil {
		sub, err := l.t.SubscribeAfter(ctx, filter, l.cursor, 256)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		l.books.did("subscriptions")
		for n := 0; n < 5000; n++ {
			seen, err := sub.Next(ctx)
			if err != nil || seen.Event.Kind == journal.EventLagged {
				break
			}
			from, number, _ := strings.Cut(string(seen.Event.Payload), ":")
			value, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				l.books.problem("an event has the payload %q", seen.Event.Payload)
			}
			l.books.arrive(subscriberOf(lane[seen.Event.Channel]), from, value, from == lane[seen.Event.Channel])
			l.cursor = sub.Cursor()
		}
		sub.Close()
	}
	return nil
}

// fallBehind subscribes to everything and reads slowly, so that events are left out for it.
func (l *life) fallBehind(ctx context.Context) error {
	sub := l.t.Subscribe(terrarium.Filter{}, 16)
	defer sub.Close()
	for round := 0; l.limit.more(round); round++ {
		seen, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		if seen.Event.Kind == journal.EventLagged {
			l.books.did("laggings")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// look reads what an operator reads: histories, searches, lineages, and checks of sessions.
func (l *life) look(ctx context.Context) error {
	random := l.random("look")
	for round := 0; l.limit.more(round); round++ {
		if err := l.lookOnce(ctx, random); err != nil && !passing(err) {
			return err
		}
		l.books.did("looks")
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// passing reports whether an error is about a session that was cut meanwhile.
func passing(err error) bool {
	code := abi.CodeOf(err)
	return code == abi.NotFound || code == abi.Conflict
}

func (l *life) lookOnce(ctx context.Context, random *rand.Rand) error {
	graph := string(l.graph(l.creature("lane", l.lanes()[random.IntN(2*l.pairs)])))
	switch random.IntN(4) {
	case 0:
		_, err := l.t.History(ctx, graph, journal.HistoryQuery{Limit: 100, Newest: true})
		return err
	case 1:
		_, err := l.t.Search(ctx, sqlitestore.SearchQuery{Text: strconv.Itoa(random.IntN(1000)), Limit: 10})
		return err
	case 2:
		_, err := l.t.Lineage(ctx, graph)
		return err
	default:
		return l.verifyOne(ctx, graph)
	}
}

// verify checks every live session.
func (l *life) verify(ctx context.Context) error {
	sessions, err := l.t.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.Live {
			err = errors.Join(err, l.verifyOne(ctx, string(s.Session)))
		}
	}
	for _, p := range l.t.Problems() {
		l.books.problem("the terrarium reports: %v", p)
	}
	return err
}

func (l *life) verifyOne(ctx context.Context, graph string) error {
	report, err := l.t.Verify(ctx, graph)
	if err != nil {
		return err
	}
	for _, faults := range [][]string{report.Missing, report.Duplicate, report.OutOfOrder, report.Damage} {
		for _, f := range faults {
			l.books.problem("session %s: %s", report.Session, f)
		}
	}
	l.books.did("checks of sessions")
	return nil
}
