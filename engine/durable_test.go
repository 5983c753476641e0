package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// saved is a session directory that engines use one after the other.
type saved struct {
	t   testing.TB
	dir string
	o   engine.Options
	// wrap, if set, wraps the storage for the engine.
	wrap func(journal.Storage) journal.Storage

	storage journal.Storage
	*world
}

func newSaved(t testing.TB, o engine.Options) *saved {
	s := &saved{t: t, dir: t.TempDir(), o: o}
	s.open()
	t.Cleanup(s.shut)
	return s
}

func (s *saved) open() {
	s.t.Helper()
	storage, err := sqlitestore.Open(s.t.Context(), s.dir, sqlitestore.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.storage = storage
	o := s.o
	o.Storage = storage
	if s.wrap != nil {
		o.Storage = s.wrap(storage)
	}
	h := newFakeHost()
	if f, ok := s.o.Host.(*fakeHost); ok {
		h = f
	}
	o.Host = h
	o.Load = func(_ context.Context, module string) ([]byte, error) { return []byte(module), nil }
	o.FreshInstances = o.FreshInstances || fresh.Instances()
	e, err := engine.New(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.world = &world{e, s.t, h}
}

func (s *saved) shut() {
	s.t.Helper()
	if s.world == nil {
		return
	}
	s.world.close()
	s.world = nil
	if err := s.storage.Close(); err != nil {
		s.t.Errorf("closing the storage: %v", err)
	}
}

// reopen closes the engine and restores everything with another one.
func (s *saved) reopen() {
	s.t.Helper()
	s.shut()
	s.open()
	s.restore()
}

func (s *saved) restore() {
	s.t.Helper()
	_, problems, err := s.Restore(s.t.Context())
	if err != nil || len(problems) > 0 {
		s.t.Fatalf("Restore: %v, problems %v", err, problems)
	}
}

// events returns the events of one kind in the store of a creature's graph.
func (w *world) events(c journal.CreatureID, kinds ...journal.EventKind) []journal.Event {
	w.t.Helper()
	events, err := w.History(w.t.Context(), string(w.graph(c)), journal.HistoryQuery{Kinds: kinds})
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

func (w *world) try(f func(b *engine.Batch) error) {
	w.t.Helper()
	if err := w.Batch(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func spec(name, module string) deploy.CreatureSpec {
	return deploy.CreatureSpec{Name: name, Module: module, Wasm: []byte(module)}
}

func TestACreatureThatJoinsWithinABatchIsSaved(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "relay"), s.add("b", "record")
	s.connect(a, b, "out")
	var c journal.CreatureID
	var ch journal.ChannelID
	s.try(func(batch *engine.Batch) error {
		added, _, err := batch.AddCreature(t.Context(), spec("c", "record"))
		if err != nil {
			return err
		}
		c = added.Creature
		out, err := batch.Do(t.Context(), topology.Connect{From: a, To: c, Name: "news"})
		ch = out.Channel
		return err
	})
	s.send(ch, "one")
	s.wait()
	s.reopen()
	s.send(ch, "two")
	s.wait()
	if got, want := s.state(c, "heard"), "news:one\nnews:two\n"; got != want {
		t.Errorf("c heard %q, want %q", got, want)
	}
}

func TestABatchThatChangesAMemberAndSplitsItOffIsSavedOnce(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "sink")
	ch := s.connect(a, b, "out")
	s.try(func(batch *engine.Batch) error {
		_, err := batch.Do(t.Context(), topology.SetStopped{ID: b, Stopped: true})
		if err == nil {
			_, err = batch.Do(t.Context(), topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen})
		}
		return err
	})
	s.reopen()
	if n := len(s.status()); n != 2 {
		t.Errorf("there are %d graphs, want 2", n)
	}
}

func TestAnEdgeThatComesAndGoesInABatchLeavesNothing(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "sink")
	ch := s.connect(a, b, "out")
	s.try(func(batch *engine.Batch) error {
		_, err := batch.Do(t.Context(), topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Send, On: true})
		if err == nil {
			_, err = batch.Do(t.Context(), topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Send})
		}
		return err
	})
	s.reopen()
	for _, c := range s.status()[0].Creatures {
		if c.ID == b && len(c.Send) > 0 {
			t.Errorf("b may send on %v, want nothing", c.Send)
		}
	}
}

// team is a deployment of n creatures, each of which listens to the one before it.
func team(n int, more ...func(*deploy.Deployment)) *deploy.Deployment {
	d := &deploy.Deployment{Name: "team"}
	for i := range n {
		c := spec(fmt.Sprintf("m%d", i), "relay")
		if i == n-1 {
			c.Module, c.Wasm = "record", []byte("record")
		}
		c.Address = fmt.Sprintf("creature.m%d", i)
		in := deploy.ChannelSpec{Address: fmt.Sprintf("channel.c%d", i), Name: fmt.Sprintf("c%d", i)}
		d.Channels = append(d.Channels, in)
		c.Listen = []deploy.WireSpec{{Channel: in.Address}}
		if i < n-1 {
			c.Send = []deploy.WireSpec{{Channel: fmt.Sprintf("channel.c%d", i+1)}}
		}
		d.Creatures = append(d.Creatures, c)
	}
	for _, f := range more {
		f(d)
	}
	return d
}

func (w *world) apply(d *deploy.Deployment) *engine.Applied {
	w.t.Helper()
	a, err := w.Apply(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestARecipeMayGrowAndShrink(t *testing.T) {
	s := newSaved(t, engine.Options{})
	var want string
	for i, n := range []int{1, 5, 2, 7, 7, 3} {
		if i > 0 {
			s.shut()
			s.open()
		}
		a := s.apply(team(n))
		s.send(a.Channels["channel.c0"], fmt.Sprint(i))
		s.wait()
		last := a.Creatures[fmt.Sprintf("creature.m%d", n-1)]
		want = fmt.Sprintf("c%d:%d\n", n-1, i)
		if got := s.state(last, "heard"); !strings.HasSuffix(got, want) {
			t.Errorf("run %d: the last of %d heard %q, want %q at the end", i, n, got, want)
		}
		if graphs := len(s.status()); graphs != 1 {
			t.Errorf("run %d: %d graphs, want 1", i, graphs)
		}
	}
}

func TestApplyTellsOfGraphsThatWereAndAreOnly(t *testing.T) {
	s := newSaved(t, engine.Options{})
	events := s.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTopologyChanged}}, 0)
	s.apply(team(5))
	events.Close()
	if ob, err := events.Next(t.Context()); err == nil {
		t.Errorf("a new graph was reported as a change: %s", ob.Event.Payload)
	}
	s.shut()
	s.open()
	events = s.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTopologyChanged}}, 0)
	s.apply(team(4, func(d *deploy.Deployment) { d.Creatures[1].Send = nil }))
	events.Close()
	live := map[journal.GraphID]bool{}
	for _, g := range s.status() {
		live[g.ID] = true
	}
	n := 0
	for ob := range events.All(t.Context()) {
		n++
		if !live[ob.Event.Graph] || !strings.Contains(string(ob.Event.Payload), `"kind":"split"`) {
			t.Errorf("%s: %s", ob.Event.Graph, ob.Event.Payload)
		}
	}
	if n != 2 || len(live) != 2 {
		t.Errorf("%d events of a split into %d graphs, want 2 and 2", n, len(live))
	}
}

func TestParentLinksDoNotCrossASplit(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.add("a", "sink")
	b := s.add("b", "sink", func(c *deploy.CreatureSpec) { c.Parent, c.Join = a, s.graph(a) })
	parent := func() journal.CreatureID {
		for _, g := range s.status() {
			for _, c := range g.Creatures {
				if c.ID == b {
					return c.Parent
				}
			}
		}
		return "none"
	}
	if parent() != a {
		t.Fatalf("the parent is %q, want %q", parent(), a)
	}
	s.change(topology.Disconnect{From: a, To: b})
	if parent() != "" {
		t.Errorf("the link crosses the split: %q", parent())
	}
	s.reopen()
	if parent() != "" {
		t.Errorf("the link is back after a restart: %q", parent())
	}
	events := s.events(b, journal.EventParentLinkChanged)
	if len(events) != 1 || events[0].Creature != b || !strings.Contains(string(events[0].Payload), `"reason":"split"`) {
		t.Errorf("events: %+v", events)
	}
}

func TestInitSeesTheSavedState(t *testing.T) {
	h := newFakeHost()
	// count stands for the linear memory of the module cached, in which it keeps its count:
	// init sets it from the saved state.
	var count atomic.Int64
	h.inits["cached"] = func(t abi.Turn, _ abi.Kind) error {
		var n int64
		if old, code := t.StateGet([]byte("n")); code == abi.OK {
			fmt.Sscan(string(old), &n)
		}
		count.Store(n)
		return nil
	}
	h.on("cached", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		return codeErr(t, t.StateSet([]byte("n"), []byte(fmt.Sprint(count.Add(1)))))
	})
	s := newSaved(t, engine.Options{Host: h})
	a := s.add("a", "cached")
	in := s.connect(a, a, "in")
	s.send(in, "1")
	s.wait()
	s.reopen()
	s.send(in, "2")
	s.wait()
	if got := s.state(a, "n"); got != "2" {
		t.Errorf("a counted to %s, want 2", got)
	}
}

func TestProducersStateAndWindowOfAVolatileGraphEnterTheStore(t *testing.T) {
	s := newSaved(t, engine.Options{})
	none := journal.Volatile
	d := team(2, func(d *deploy.Deployment) { d.Session.Durability = &none })
	a := s.apply(d)
	in, last := a.Channels["channel.c0"], a.Creatures["creature.m1"]
	out := engine.Outgoing{Payload: []byte("1"), Producer: "file", Offset: 7}
	if _, err := s.Send(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	s.wait()
	s.change(topology.SetStopped{ID: last, Stopped: true})
	s.send(a.Channels["channel.c1"], "2")
	reader, err := s.Read(a.Channels["channel.c1"], "out", engine.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.send(a.Channels["channel.c1"], "3")
	reader.Close()
	other := s.add("other", "sink")
	if d := s.change(topology.Connect{From: other, To: a.Creatures["creature.m0"], Channel: in}); d.Delta.Kind != "merge" {
		t.Fatalf("kind %s", d.Delta.Kind)
	}
	s.reopen()
	sent, err := s.Send(t.Context(), in, out)
	if err != nil || !sent.Duplicate {
		t.Errorf("the producer's offset was lost: %+v, %v", sent, err)
	}
	s.change(topology.SetStopped{ID: last})
	s.wait()
	if got, want := s.state(last, "heard"), "c1:1\nc1:2\nc1:3\n"; got != want {
		t.Errorf("the stopped creature heard %q, want %q", got, want)
	}
	reader, err = s.Read(a.Channels["channel.c1"], "out", engine.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if n := reader.Pending(); n != 1 {
		t.Errorf("%d messages wait for the reader, want 1", n)
	}
}

func TestABacklogDoesNotHideTheNewCursor(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "record")
	ch := s.connect(a, b, "out")
	s.change(topology.SetEdge{Creature: a, Channel: ch, Direction: journal.Listen, On: true})
	s.connect(a, b, "other") // connects them, so that the graph stays whole
	s.change(topology.SetStopped{ID: b, Stopped: true})
	s.send(ch, "1")
	s.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen})
	s.send(ch, "missed")
	s.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen, On: true})
	s.send(ch, "2")
	s.reopen()
	s.change(topology.SetStopped{ID: b})
	s.wait()
	if got, want := s.state(b, "heard"), "out:1\nout:2\n"; got != want {
		t.Errorf("b heard %q, want %q", got, want)
	}
}

// faulty is a storage whose cuts can be made to fail, and whose stores report the
// requests they get.
type faulty struct {
	journal.Storage
	cut     error
	state   func()
	created []int // stores by each Create
}

type watched struct {
	journal.Store
	f *faulty
}

func (f *faulty) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	f.created = append(f.created, len(specs))
	return createThrough(ctx, f.Storage, specs, func(s journal.Store) journal.Store { return &watched{s, f} })
}

func (f *faulty) Open(ctx context.Context, id journal.SessionID) (journal.Store, error) {
	s, err := f.Storage.Open(ctx, id)
	return &watched{s, f}, err
}

func (f *faulty) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	if f.cut != nil {
		return nil, f.cut
	}
	return cutThrough(ctx, f.Storage, cut, func(s journal.Store) journal.Store { return &watched{s, f} })
}

func (s *watched) wrapped() journal.Store { return s.Store }

// createThrough makes stores and wraps them.
func createThrough(ctx context.Context, storage journal.Storage, specs []journal.StoreSpec, wrap func(journal.Store) journal.Store) ([]journal.Store, error) {
	stores, err := storage.Create(ctx, specs...)
	for i, s := range stores {
		stores[i] = wrap(s)
	}
	return stores, err
}

// cutThrough cuts stores that a test has wrapped, and wraps the children.
func cutThrough(ctx context.Context, storage journal.Storage, cut journal.Cut, wrap func(journal.Store) journal.Store) ([]journal.Store, error) {
	cut.Parents = slices.Clone(cut.Parents)
	for i, p := range cut.Parents {
		if w, ok := p.(interface{ wrapped() journal.Store }); ok {
			cut.Parents[i] = w.wrapped()
		}
	}
	stores, err := storage.Cut(ctx, cut)
	for i, s := range stores {
		stores[i] = wrap(s)
	}
	return stores, err
}

func (s *watched) State(ctx context.Context, c journal.CreatureID) (map[string][]byte, error) {
	if f := s.f.state; f != nil {
		f()
	}
	return s.Store.State(ctx, c)
}

// TestARecipeMakesItsStoresAtOnce applies a recipe of several graphs. All stores are created in
// one call, so that a process that ends at any moment never leaves only some of them.
func TestARecipeMakesItsStoresAtOnce(t *testing.T) {
	f := &faulty{}
	s := &saved{t: t, dir: t.TempDir(), wrap: func(st journal.Storage) journal.Storage { f.Storage = st; return f }}
	s.open()
	t.Cleanup(s.shut)
	s.apply(team(2, func(d *deploy.Deployment) {
		for i := range d.Creatures {
			d.Creatures[i].Send = nil // each is in a graph of its own
		}
	}))
	if !slices.Equal(f.created, []int{2}) {
		t.Errorf("stores were made in the portions %v, want both at once", f.created)
	}
}

func TestACutThatFailsChangesNothing(t *testing.T) {
	f := &faulty{}
	s := &saved{t: t, dir: t.TempDir(), wrap: func(st journal.Storage) journal.Storage { f.Storage = st; return f }}
	s.open()
	t.Cleanup(s.shut)
	a, b, c := s.add("a", "relay"), s.add("b", "record"), s.add("c", "sink")
	in := s.connect(c, a, "in")
	out := s.connect(a, b, "out")
	other := s.add("x", "sink")
	s.wait()
	before := s.status()
	f.cut = errors.New("no")
	for _, op := range []topology.Op{
		topology.RemoveChannel{ID: out}, topology.RemoveCreature{ID: a},
		topology.Connect{From: other, To: a}, topology.SetEdge{Creature: other, Channel: in, Direction: journal.Listen, On: true},
	} {
		if _, err := s.Change(t.Context(), op); abi.CodeOf(err) != abi.Storage {
			t.Errorf("%T: %v, want storage", op, err)
		}
	}
	if _, err := s.AddCreature(t.Context(), deploy.CreatureSpec{
		Name: "y", Wasm: []byte("sink"), Listen: []deploy.WireSpec{{Channel: string(in)}, {Channel: "from-x"}},
	}); err == nil {
		t.Error("a creature was wired to a channel that does not exist")
	}
	if after := s.status(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("changes that failed have changed the status from\n%v\nto\n%v", before, after)
	}
	f.cut = nil
	s.send(in, "still here")
	s.wait()
	if got, want := s.state(b, "heard"), "out:still here\n"; got != want {
		t.Errorf("b heard %q, want %q", got, want)
	}
	s.change(topology.Connect{From: other, To: a})
	s.reopen()
	if n := len(s.status()); n != 1 {
		t.Errorf("%d graphs, want 1", n)
	}
}

func TestACutWhileStateIsReadIsNoFailure(t *testing.T) {
	f := &faulty{}
	s := &saved{t: t, dir: t.TempDir(), wrap: func(st journal.Storage) journal.Storage { f.Storage = st; return f }}
	s.open()
	t.Cleanup(s.shut)
	a := s.add("a", "count", func(c *deploy.CreatureSpec) { c.Restart.Mode = deploy.RestartNever })
	in := s.connect(a, a, "in")
	s.send(in, "1")
	s.wait()
	s.reopen()
	other := s.add("x", "sink", func(c *deploy.CreatureSpec) { c.Stopped = true })
	done := false
	f.state = func() {
		if !done {
			done = true
			s.change(topology.SetEdge{Creature: other, Channel: in, Direction: journal.Listen, On: true})
		}
	}
	s.send(in, "2")
	s.wait()
	f.state = nil
	if got := s.state(a, "n"); got != "2" || s.DeadLetterCount() != 0 {
		t.Errorf("a counted to %s with %d dead letters, want 2 and none", got, s.DeadLetterCount())
	}
}

func TestEventTimesRiseAcrossAMerge(t *testing.T) {
	s := newSaved(t, engine.Options{Clock: stillClock{}})
	a, b := s.add("a", "sink"), s.add("b", "sink")
	in := s.connect(a, a, "in")
	for i := range 50 {
		s.send(in, fmt.Sprint(i))
	}
	s.wait()
	s.connect(b, a, "bridge")
	s.wait()
	events := s.events(a)
	times := map[int64]bool{}
	var last int64
	for _, ev := range events {
		if ev.Kind == journal.EventTopologyChanged && strings.Contains(string(ev.Payload), "merge") && ev.Time <= last {
			t.Errorf("the merge has the time %d, which is not after %d", ev.Time, last)
		}
		last = max(last, ev.Time)
		times[ev.Time] = true
	}
	if len(slices.Collect(maps.Keys(times))) < 50 {
		t.Errorf("only %d different times", len(times))
	}
}

// stillClock always shows the same time; its timers fire at once.
type stillClock struct{}

func (stillClock) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (stillClock) Timer(time.Duration) (<-chan time.Time, func()) {
	c := make(chan time.Time, 1)
	c <- time.Unix(1_700_000_000, 0)
	return c, func() {}
}

func TestABacklogOutlivesItsChannelAndARestart(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "record")
	ch := s.connect(a, b, "out")
	s.connect(a, b, "other") // connects them, so that the graph stays whole
	s.change(topology.SetStopped{ID: b, Stopped: true})
	s.send(ch, "1")
	s.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen})
	s.change(topology.RemoveChannel{ID: ch})
	s.reopen()
	s.change(topology.SetStopped{ID: b})
	s.wait()
	if got, want := s.state(b, "heard"), "out:1\n"; got != want {
		t.Errorf("b heard %q, want %q", got, want)
	}
}
