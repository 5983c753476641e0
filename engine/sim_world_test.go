package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// simulation is one running program: an engine without goroutines, the disk and clock
// under it, and the model beside it.
type simulation struct {
	ctx    context.Context
	seed   uint64
	random *rand.Rand
	disk   *sim.Disk
	clock  *sim.Clock
	host   *fakeHost
	e      *engine.Stepper
	o      engine.Options
	boots  int
	depth  int // of steps within turns

	names, offset, creatures, channels int // counters for names

	plans    map[string]plan    // of deployments, as last applied
	applied  map[string]bool    // by this process
	applying *deploy.Deployment // nil unless one is being applied
	outside
	cuts
	edits
	watcher
	onward continued

	model
	tracing bool
	trace   []string
}

// simFailure is what a failed check panics with.
type simFailure string

func (s *simulation) failf(format string, args ...any) {
	panic(simFailure(fmt.Sprintf(format, args...)))
}

func (s *simulation) say(format string, args ...any) {
	if s.tracing {
		s.trace = append(s.trace, strings.Repeat("  ", s.depth)+fmt.Sprintf(format, args...))
	}
}

// simulate runs a program. It returns what failed, or "".
func simulate(seed uint64, program []step, tracing bool) (failure string, trace []string) {
	s := &simulation{
		ctx: context.Background(), seed: seed, disk: sim.NewDisk(seed), clock: sim.NewClock(), tracing: tracing,
		random: rand.New(rand.NewPCG(seed, 1)), model: newModel(), cuts: newCuts(),
		plans: map[string]plan{}, applied: map[string]bool{},
	}
	defer func() {
		trace = s.trace
		switch p := recover().(type) {
		case nil:
		case simFailure:
			failure = string(p)
		default:
			failure = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	s.configure()
	s.followEvents()
	s.boot()
	s.restore()
	for i, st := range program {
		s.random = rand.New(rand.NewPCG(st.seed, 2))
		s.say("%d. %s", i+1, st)
		stepKinds[st.kind].run(s, st)
		s.reboot()
		s.checkPartition()
		s.watch()
		s.follow()
	}
	s.finish()
	return "", s.trace
}

// configure draws the options of the engine and the disk.
func (s *simulation) configure() {
	s.o = engine.Options{Clock: s.clock, Durability: journal.Normal, FreshInstances: s.random.IntN(4) == 0}
	if s.random.IntN(3) == 0 {
		s.o.Durability = journal.Full
	}
	s.o.Load = func(_ context.Context, m string) ([]byte, error) { return []byte(m), nil }
	s.disk.Manual, s.disk.Bound = true, 1+s.random.IntN(30)
	s.disk.Pause = s.interrupt
	s.say("durability %s, fresh instances %v, at most %d records unwritten", s.o.Durability, s.o.FreshInstances, s.disk.Bound)
}

// boot starts an engine on what the disk has.
func (s *simulation) boot() {
	s.boots++
	s.depth = 0
	s.disk.Calm, s.disk.CutCrash, s.disk.Broken = true, sim.NoCrash, false
	s.host = newFakeHost()
	s.host.on("sim", s.guest)
	s.host.on("sim2", s.guest)
	o := s.o
	s.storage = s.disk.Boot()
	o.Host, o.Storage = s.host, s.storage
	seed := s.seed*1000 + uint64(s.boots)
	o.Seed = &seed
	e, err := engine.NewStepper(s.ctx, o, rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		s.failf("New: %v", err)
	}
	s.e = e
	s.outside, s.frames, s.changed = outside{}, nil, true
	s.startWatching()
	s.startOnward()
}

// restore restores the saved graphs.
func (s *simulation) restore() {
	for try := 0; ; try++ {
		_, problems, err := s.e.Restore(s.ctx)
		if err == nil && len(problems) == 0 {
			break
		}
		if try > 3 || len(problems) > 0 {
			s.failf("Restore: %v, problems %v", err, problems)
		}
		s.say("Restore: %v", err)
	}
	s.disk.Calm = false
}

// reboot starts again if the process has died.
func (s *simulation) reboot() {
	for s.disk.Crashed() {
		s.survive(s.disk, s.lost)
		s.lost = false
		s.boot()
		s.checkSaved()
		s.reconcile(s)
		s.checkDoubt() // before a recipe removes what it does not declare
		if s.reapply(); !s.disk.Crashed() {
			s.restore()
			s.checkEdits()
			s.checkLog()
		}
	}
}

// calm keeps everything else from happening until the returned function is called.
func (s *simulation) calm() (noisy func()) {
	before := s.disk.Calm
	s.disk.Calm = true
	return func() { s.disk.Calm = before }
}

// interrupt lets another step happen in the middle of a turn, or while a store is waited
// for.
func (s *simulation) interrupt() {
	if s.depth >= 2 || s.disk.Crashed() || s.e.Alone() || s.random.IntN(8) > 0 {
		return
	}
	defer s.freeze()
	st := drawStep(s.random)
	if !stepKinds[st.kind].nested {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	s.say("meanwhile %s", st)
	stepKinds[st.kind].run(s, st)
}

func (s *simulation) op(ops ...topology.Op) {
	s.change(fmt.Sprintf("%+v", ops), func() error {
		_, err := s.e.Change(s.ctx, ops...)
		return err
	})
}

// change applies a change of the topology and reports it to the model. It reports whether
// the change was made.
func (s *simulation) change(what string, f func() error) bool {
	noisy := s.calm()
	s.changed = true
	s.changes++
	before, was, heads := s.edgesNow(), s.situation(), s.e.Heads()
	s.noteUnlogged(s.e.Unlogged())
	err := f()
	noisy()
	s.say("%s: %v", what, err)
	if s.disk.Crashed() {
		s.unknown, s.doubtHeads = true, heads
		return false
	}
	after := s.edgesNow()
	for edge, l := range after {
		l.Head = heads[edge.Channel] // the new listeners get the change's own messages: answers to requests to removed creatures
		after[edge] = l
	}
	if err != nil {
		if !sameEdges(before, after) {
			s.failf("%s failed with %v, but changed the listeners:\n%v\n%v", what, err, before, after)
		}
		return false
	}
	s.checkLives(what, was)
	s.checkParentage(what, was)
	s.checkWires(what, was)
	s.noteChange(s.disk, before, after, was.sessions)
	return true
}

// settle repairs the disk, starts every creature, and continues until there is nothing left to
// do.
func (s *simulation) settle() {
	s.disk.Broken, s.disk.CutCrash = false, sim.NoCrash
	s.disk.FailCuts, s.disk.FailCreates, s.disk.FailOpens, s.disk.FailRetires, s.disk.FailReads = 0, 0, 0, 0, 0
	s.depth += 2 // nothing else happens meanwhile
	defer func() { s.depth -= 2 }()
	if slices.ContainsFunc(s.e.Remembered(), func(r engine.Remembered) bool { return r.Name == guarded }) {
		s.apply(s.plans[guarded]) // turns with questions wait for it
	}
	for range 4 {
		s.quiesce()
		s.clock.Advance(time.Minute)
		s.e.Ring()
	}
	s.quiesce()
}

func (s *simulation) quiesce() {
	for range 2000 {
		for s.serve() {
		}
		if s.decide(0, s.random.IntN(3) > 0) {
			continue
		}
		if s.e.Busy() {
			s.clock.Advance(100 * time.Millisecond)
			s.e.Ring()
			continue
		}
		creatures, _, _ := s.e.Members()
		i := slices.IndexFunc(creatures, s.e.Stopped)
		if i < 0 {
			return
		}
		s.op(topology.SetStopped{ID: creatures[i]})
	}
	s.failf("the engine does not become idle")
}

// finish ends a program: everything settles, and a restart changes nothing.
func (s *simulation) finish() {
	s.settle()
	s.check()
	s.checkFollowed()
	s.checkArchive()
	s.completeSome()
	before := s.view()
	s.restart(step{})
	s.survive(s.disk, false)
	s.boot()
	s.reconcile(s)
	s.checkSaved()
	s.restore()
	s.checkPartition()
	s.checkLog()
	if after := s.view(); after != before {
		s.failf("before a restart:\n%s\nafter it:\n%s", before, after)
	}
	s.settle()
	s.check()
	s.checkFollowed()
	s.checkArchive()
	if err := s.e.Close(s.ctx); err != nil {
		s.failf("Close: %v", err)
	}
	s.disk.Flush()
}

// view returns, as text, what a restart must not change.
func (s *simulation) view() string {
	defer s.calm()()
	var b strings.Builder
	status, err := s.e.Status("")
	if err != nil {
		s.failf("Status: %v", err)
	}
	for _, g := range status {
		if g.Session == "" {
			continue
		}
		fmt.Fprintf(&b, "graph %s %s %s, wires %v\n", g.ID, g.Session, g.Durability, g.Wires)
		for _, c := range g.Creatures {
			if c.Parent != "" && s.e.Volatile(journal.InboxOf(c.Parent)) {
				c.Parent = "" // the parent does not exist after a restart
			}
			fmt.Fprintf(&b, " %s %s %s of %q listens %v sends %v\n", c.ID, c.Name, c.State, c.Parent, c.Aliases.Listen, c.Aliases.Send)
			state, err := s.e.State(s.ctx, c.ID, "")
			timers, err2 := s.e.Timers(c.ID)
			fmt.Fprintf(&b, "  %q %v %v %v, asks %v\n", state, timers, err, err2, s.e.Open(c.ID))
			s.viewProducers(&b, journal.InboxOf(c.ID))
		}
		for _, ch := range g.Channels {
			fmt.Fprintf(&b, " %s %s %v %v %d\n", ch.ID, ch.Name, ch.Listeners, ch.Senders, ch.Head)
			s.viewProducers(&b, ch.ID)
		}
		letters, err := s.e.DeadLetters(s.ctx, g.ID, "", journal.EventID{}, 0)
		fmt.Fprintf(&b, " letters %v %v\n", letters, err)
	}
	return b.String()
}

func (s *simulation) viewProducers(b *strings.Builder, ch journal.ChannelID) {
	p, err := s.e.Producers(ch)
	fmt.Fprintf(b, "  producers %v %v\n", p, err)
}
