package engine_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
	"pgregory.net/rapid"
)

// program is a random sequence of operations on an engine, next to a simple model of what
// its creatures must receive.
type program struct {
	*rapid.T
	e       *engine.Engine
	host    *fakeHost
	storage journal.Storage // nil: everything is volatile
	o       engine.Options
	dir     string

	creatures []*modelCreature
	channels  []*modelChannel
	sends     int

	mu     sync.Mutex
	failed map[string]bool // attempts that have failed once
}

// modelCreature is a creature and what it must receive, by channel.
type modelCreature struct {
	id      journal.CreatureID
	stopped bool
	gone    bool
	listens map[*modelChannel]bool
	hears   map[string][]string // by channel
	// cut are channels that were removed: what had not been handled by then is lost, so a
	// prefix is enough.
	cut map[string]bool
	out journal.ChannelID // to itself alone: counts its turns
}

type modelChannel struct {
	id   journal.ChannelID
	name string
	gone bool
}

func newProgram(rt *rapid.T, dir string) *program {
	p := &program{T: rt, dir: dir, host: newFakeHost(), failed: map[string]bool{}}
	p.host.on("listener", p.listen)
	p.o = engine.Options{
		Host: p.host, Workers: rapid.IntRange(1, 4).Draw(rt, "workers"),
		FreshInstances: rapid.Bool().Draw(rt, "fresh") || fresh.Instances(),
		Load:           func(_ context.Context, m string) ([]byte, error) { return []byte(m), nil },
	}
	p.open()
	return p
}

// listen stores what it receives in its state and sends it on. Payloads say whether it
// fails, at the first attempt or always.
func (p *program) listen(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	b, _ := t.Source(abi.SourcePayload)
	payload := string(b)
	self, _ := t.Source(abi.SourceSelf)
	channel, rest, _ := strings.Cut(payload, " ")
	key := []byte("heard " + channel)
	old, _ := t.StateGet(key)
	if err := codeErr(t, t.StateSet(key, append(slices.Clone(old), payload+"\n"...))); err != nil {
		return err
	}
	if s := t.Send(abi.AllChannels, []byte(payload), nil); s < 0 {
		return status(t, s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	attempt := string(self) + payload
	if strings.HasPrefix(rest, "dies") || (strings.HasPrefix(rest, "fails") && !p.failed[attempt]) {
		p.failed[attempt] = true
		return &abi.Error{Code: abi.Trapped, Message: "as told"}
	}
	return nil
}

func (p *program) ctx() context.Context { return context.Background() }

func (p *program) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%+v", err)
	}
}

func (p *program) open() {
	o := p.o
	if p.dir != "" {
		storage, err := sqlitestore.Open(p.ctx(), p.dir, sqlitestore.Options{})
		p.must(err)
		p.storage, o.Storage = storage, storage
	}
	e, err := engine.New(p.ctx(), o)
	p.must(err)
	p.e = e
}

func (p *program) shut() {
	if p.e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx(), 5*time.Minute)
	defer cancel()
	err := p.e.Close(ctx)
	p.e = nil
	if p.storage != nil {
		p.must(p.storage.Close())
	}
	p.must(err)
	if p.host.open() != 0 {
		p.Fatalf("%d instances are open after Close", p.host.open())
	}
}

func (p *program) change(ops ...topology.Op) []engine.Outcome {
	out, err := p.e.Change(p.ctx(), ops...)
	p.must(err)
	return out
}

func (p *program) idle() {
	ctx, cancel := context.WithTimeout(p.ctx(), 5*time.Minute)
	defer cancel()
	p.must(p.e.WaitIdle(ctx))
}

// pick draws one of the elements for which gone returns false. It returns nil if there is none.
func pick[X any](p *program, list []*X, gone func(*X) bool) *X {
	var live []*X
	for _, x := range list {
		if !gone(x) {
			live = append(live, x)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return rapid.SampledFrom(live).Draw(p.T, "which")
}

func (p *program) creature() *modelCreature {
	return pick(p, p.creatures, func(c *modelCreature) bool { return c.gone })
}

func (p *program) channel() *modelChannel {
	return pick(p, p.channels, func(c *modelChannel) bool { return c.gone })
}

func (p *program) add() {
	name := fmt.Sprintf("c%d", len(p.creatures))
	s := spec(name, "listener")
	s.Restart = deploy.RestartPolicy{Attempts: 2, Max: 1 << 20, Backoff: time.Microsecond}
	s.Limits.Mailbox = 512
	if p.storage != nil {
		s.Limits.Mailbox = rapid.IntRange(1, 8).Draw(p.T, "mailbox")
	}
	c := &modelCreature{listens: map[*modelChannel]bool{}, hears: map[string][]string{}, cut: map[string]bool{}}
	p.must(p.e.Batch(p.ctx(), func(b *engine.Batch) error {
		added, _, err := b.AddCreature(p.ctx(), s)
		if err != nil {
			return err
		}
		c.id = added.Creature
		out, err := b.AddChannel(context.Background(), added.Graph, name+"-out", "")
		if err != nil {
			return err
		}
		c.out = out.Channel
		_, err = b.Do(context.Background(), topology.SetEdge{Creature: c.id, Channel: c.out, Direction: journal.Send, On: true})
		return err
	}))
	p.creatures = append(p.creatures, c)
}

func (p *program) addChannel() {
	if c := p.creature(); c != nil {
		name := fmt.Sprintf("h%d", len(p.channels))
		g, err := p.e.FindGraph(string(c.id))
		p.must(err)
		out, err := p.e.AddChannel(p.ctx(), g, name, "")
		p.must(err)
		ch := &modelChannel{id: out.Channel, name: name}
		p.channels = append(p.channels, ch)
		p.change(topology.SetEdge{Creature: c.id, Channel: ch.id, Direction: journal.Listen, On: true})
		c.listens[ch] = true
	}
}

func (p *program) listenOn()  { p.setEdge(true) }
func (p *program) listenOff() { p.setEdge(false) }

func (p *program) setEdge(on bool) {
	if c, ch := p.creature(), p.channel(); c != nil && ch != nil {
		p.change(topology.SetEdge{Creature: c.id, Channel: ch.id, Direction: journal.Listen, On: on})
		if on {
			c.listens[ch] = true
		} else {
			delete(c.listens, ch)
		}
	}
}

func (p *program) remove() {
	if c := p.creature(); c != nil {
		p.change(topology.RemoveCreature{ID: c.id})
		c.gone = true
		p.forgetEnded()
	}
}

// forgetEnded finds the channels that have ended with their graph.
func (p *program) forgetEnded() {
	for _, ch := range p.channels {
		if _, err := p.e.FindChannel("", string(ch.id)); err != nil {
			ch.gone = true
		}
	}
}

func (p *program) removeChannel() {
	if ch := p.channel(); ch != nil {
		p.change(topology.RemoveChannel{ID: ch.id})
		ch.gone = true
		for _, c := range p.creatures {
			if c.listens[ch] {
				delete(c.listens, ch)
				c.cut[ch.name] = true
			}
		}
	}
}

func (p *program) stopOrStart() {
	if c := p.creature(); c != nil {
		c.stopped = !c.stopped
		p.change(topology.SetStopped{ID: c.id, Stopped: c.stopped})
	}
}

// restart stops and starts a creature in one go.
func (p *program) restart() {
	if c := p.creature(); c != nil {
		p.change(topology.SetStopped{ID: c.id, Stopped: true}, topology.SetStopped{ID: c.id})
		c.stopped = false
	}
}

// toggle turns an edge off and on again, or on and off, in one change.
func (p *program) toggle() {
	if c, ch := p.creature(), p.channel(); c != nil && ch != nil {
		on := c.listens[ch]
		edge := topology.SetEdge{Creature: c.id, Channel: ch.id, Direction: journal.Listen}
		first, second := edge, edge
		first.On, second.On = !on, on
		p.change(first, second)
	}
}

func (p *program) payload(channel string) string {
	p.sends++
	mood := rapid.SampledFrom([]string{"", "", "", "", "fails", "dies"}).Draw(p.T, "mood")
	return fmt.Sprintf("%s %s%d", channel, mood, p.sends)
}

func (p *program) send() {
	ch := p.channel()
	if ch == nil {
		return
	}
	for range rapid.IntRange(1, 12).Draw(p.T, "count") {
		payload := p.payload(ch.name)
		_, err := p.e.Send(p.ctx(), ch.id, engine.Outgoing{Payload: []byte(payload)})
		p.must(err)
		for _, c := range p.creatures {
			if !c.gone && c.listens[ch] {
				c.expect(ch.name, payload)
			}
		}
	}
}

func (p *program) sendTo() {
	if c := p.creature(); c != nil {
		payload := p.payload("inbox")
		_, err := p.e.SendTo(p.ctx(), c.id, engine.Outgoing{Payload: []byte(payload)})
		p.must(err)
		c.expect("inbox", payload)
	}
}

func (c *modelCreature) expect(channel, payload string) {
	if !strings.Contains(payload, " dies") {
		c.hears[channel] = append(c.hears[channel], payload)
	}
}

// pending is the backlog of each creature.
func (p *program) pending() map[journal.CreatureID]map[journal.ChannelID]uint64 {
	status, err := p.e.Status("")
	p.must(err)
	out := map[journal.CreatureID]map[journal.ChannelID]uint64{}
	for _, g := range status {
		for _, c := range g.Creatures {
			out[c.ID] = map[journal.ChannelID]uint64{}
			for ch, cursor := range c.Cursors {
				if cursor.Pending > 0 {
					out[c.ID][ch] += cursor.Pending
				}
			}
		}
	}
	return out
}

// reopen closes the engine and continues with another one.
func (p *program) reopen() {
	if p.storage == nil {
		return
	}
	var before map[journal.CreatureID]map[journal.ChannelID]uint64
	quiet := rapid.Bool().Draw(p.T, "quiet")
	if quiet {
		p.idle()
		before = p.pending()
	}
	p.shut()
	p.open()
	_, problems, err := p.e.Restore(p.ctx())
	p.must(err)
	if len(problems) > 0 {
		p.Fatalf("problems: %v", problems)
	}
	if !quiet {
		return
	}
	p.idle()
	if after := p.pending(); fmt.Sprint(after) != fmt.Sprint(before) {
		p.Fatalf("pending before %v\nafter %v", before, after)
	}
}

func (p *program) check() {
	for _, c := range p.creatures {
		if !c.gone && c.stopped {
			p.change(topology.SetStopped{ID: c.id})
		}
	}
	p.idle()
	for i, c := range p.creatures {
		if c.gone {
			continue
		}
		entries, err := p.e.State(p.ctx(), c.id, "")
		p.must(err)
		heard, turns := map[string][]string{}, 0
		for _, e := range entries {
			name := strings.TrimPrefix(e.Key, "heard ")
			heard[name] = strings.Split(strings.TrimSuffix(string(e.Value), "\n"), "\n")
			turns += len(heard[name])
		}
		for name, want := range c.hears {
			got := heard[name]
			if c.cut[name] && len(got) <= len(want) {
				want = want[:len(got)]
			}
			if !slices.Equal(got, want) {
				p.Errorf("c%d heard on %s\n%q, want\n%q", i, name, got, want)
			}
			delete(heard, name)
		}
		if len(heard) > 0 {
			p.Errorf("c%d also heard %q", i, heard)
		}
		if head := p.head(c.out); head != uint64(turns) {
			p.Errorf("c%d sent %d messages in %d turns", i, head, turns)
		}
	}
}

func (p *program) head(id journal.ChannelID) uint64 {
	status, err := p.e.Status("")
	p.must(err)
	for _, g := range status {
		for _, ch := range g.Channels {
			if ch.ID == id {
				return ch.Head
			}
		}
	}
	return 0
}

func TestRandomProgramsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { runProgram(rt, "") })
}

func TestRandomDurableProgramsAgainstAModel(t *testing.T) {
	usually(t, 20) // each opens files
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "session")
		if err != nil {
			rt.Fatal(err)
		}
		runProgram(rt, dir)
	})
}

// usually makes rapid draw a number of programs, or half as many in make test, unless
// TERRARIUM_SEEDS sets another number.
func usually(t *testing.T, programs int) {
	t.Helper()
	if !seeded.Part(1, 2) {
		programs /= 2
	}
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	t.Cleanup(func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
	if err := checks.Value.Set(cmp.Or(os.Getenv("TERRARIUM_SEEDS"), strconv.Itoa(programs))); err != nil {
		t.Fatal(err)
	}
}

func runProgram(rt *rapid.T, dir string) {
	p := newProgram(rt, dir)
	defer p.shut()
	p.add()
	p.addChannel()
	steps := map[string]func(){
		"add": p.add, "add channel": p.addChannel, "listen": p.listenOn, "unlisten": p.listenOff,
		"remove": p.remove, "remove channel": p.removeChannel, "stop or start": p.stopOrStart,
		"restart": p.restart, "toggle": p.toggle, "send": p.send, "send again": p.send, "send to": p.sendTo,
		"idle": p.idle, "reopen": p.reopen, "listen again": p.listenOn,
	}
	names := []string{}
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(5, 40).Draw(rt, "steps") {
		steps[rapid.SampledFrom(names).Draw(rt, "step")]()
	}
	p.check()
}
