package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// step is one step of a program. Its numbers choose among what exists when it runs, so
// that a program makes sense without any of its steps.
type step struct {
	kind    int // index in stepKinds
	a, b, c int
	seed    uint64 // of all other random choices in it
}

func (st step) String() string {
	return fmt.Sprintf("%s(%d, %d, %d)", stepKinds[st.kind].name, st.a, st.b, st.c)
}

// stepKinds are the kinds of step, with their frequencies. Nested ones may also happen in
// the middle of a turn.
var stepKinds []stepInfo

type stepInfo struct {
	name   string
	weight int
	nested bool
	run    func(s *simulation, st step)
}

func init() { // because steps draw steps
	stepKinds = []stepInfo{
		{"run", 44, true, (*simulation).runSome},
		{"send", 40, true, (*simulation).send},
		{"sendTo", 8, true, (*simulation).sendTo},
		{"addCreature", 6, true, (*simulation).addCreature},
		{"removeCreature", 2, true, (*simulation).removeCreature},
		{"addChannel", 4, true, (*simulation).addChannel},
		{"removeChannel", 1, true, (*simulation).removeChannel},
		{"setEdge", 16, true, (*simulation).setEdge},
		{"connect", 10, true, (*simulation).connect},
		{"disconnect", 3, true, (*simulation).disconnect},
		{"toggle", 2, true, (*simulation).toggle},
		{"rearrange", 3, true, (*simulation).rearrange},
		{"wire", 8, true, (*simulation).wire},
		{"unwire", 2, true, (*simulation).unwire},
		{"stopOrStart", 5, true, (*simulation).stopOrStart},
		{"redeliver", 8, true, (*simulation).redeliver},
		{"deploy", 6, true, (*simulation).deploy},
		{"read", 10, true, (*simulation).read},
		{"ask", 5, true, (*simulation).ask},
		{"collect", 3, true, (*simulation).collect},
		{"advance", 12, true, (*simulation).advance},
		{"write", 24, true, (*simulation).write},
		{"copy", 16, true, (*simulation).copyHistory},
		{"breakDisk", 2, true, (*simulation).breakDisk},
		{"fail", 2, true, (*simulation).failNext},
		{"kill", 2, true, (*simulation).kill},
		{"powerLoss", 1, true, (*simulation).powerLoss},
		{"crashCut", 1, true, (*simulation).crashCut},
		{"restart", 1, false, (*simulation).restart},
		{"settle", 1, false, (*simulation).settleStep},
		{"replace", 4, true, (*simulation).replace},
		{"decide", 8, true, (*simulation).decideStep},
		{"sweep", 8, true, (*simulation).sweep},
	}
}

// stepKind is the index of a kind of step.
func stepKind(name string) int {
	return slices.IndexFunc(stepKinds, func(k stepInfo) bool { return k.name == name })
}

// drawStep draws a step.
func drawStep(r *rand.Rand) step {
	total := 0
	for _, k := range stepKinds {
		total += k.weight
	}
	n, kind := r.IntN(total), 0
	for n >= stepKinds[kind].weight {
		n -= stepKinds[kind].weight
		kind++
	}
	return step{kind, r.IntN(1000), r.IntN(1000), r.IntN(1000), r.Uint64()}
}

// runSome runs turns of some creatures.
func (s *simulation) runSome(st step) {
	for range 1 + st.a%10 {
		if !s.serve() {
			return
		}
	}
}

// payload makes a payload with orders.
func (s *simulation) payload(n int) string {
	s.names++
	p := fmt.Sprintf("m%d", s.names)
	switch n % 20 {
	case 0, 1, 2, 3:
		p += " h1"
		if aboutApprovals(s.seed) {
			p += " p1"
		}
	case 4:
		p += " h2"
	case 5:
		p += " h1 x1"
	case 6:
		p += " x2"
	case 7:
		p += " h1 D0"
	case 8:
		p += fmt.Sprintf(" t%d", 50*(n%7))
	case 9:
		p += fmt.Sprintf(" T%d", 400+n)
	case 10:
		p += " C0"
	case 11, 12:
		p += fmt.Sprintf(" a%d", n%7)
	case 13:
		p += fmt.Sprintf(" d%d h1", n%7)
	case 14:
		p += fmt.Sprintf(" f%d", n%2)
	case 15:
		p += fmt.Sprintf(" g%d h1 f%d", n+s.names, n%2)
	case 16:
		p += fmt.Sprintf(" g%d t%d a%d", n+s.names, 50*(n%7), n%7)
	case 17:
		p += fmt.Sprintf(" g%d x%d", n+s.names, n%3)
	case 18:
		p += fmt.Sprintf(" O%d h1", n%3)
	case 19:
		p += " h1 p1"
	}
	return p
}

func (s *simulation) outgoing(st step) engine.Outgoing {
	out := engine.Outgoing{Durable: st.c%4 == 0}
	payload := s.payload(st.b)
	if st.c%5 == 0 {
		out.Producer = "p"
		out.Offset = uint64(1 + s.offset - min(s.offset, st.b%3))
		s.offset = max(s.offset, int(out.Offset))
		payload += fmt.Sprintf(" o%d", out.Offset)
	}
	out.Payload = []byte(payload)
	return out
}

func (s *simulation) send(st step) {
	_, channels, _ := s.e.Members()
	if len(channels) == 0 {
		return
	}
	ch := channels[st.a%len(channels)]
	for range 1 + st.c%4 {
		out := s.outgoing(st)
		s.say("send %q on %s, producer %d, durable %v", out.Payload, ch, out.Offset, out.Durable)
		unlogged := s.e.Volatile(ch)
		sent, err := s.e.Send(s.sendContext(ch), ch, out)
		s.noteSent(ch, out, unlogged, sent, err)
		st.b++
	}
}

func (s *simulation) sendTo(st step) {
	if c, ok := s.creature(st.a); ok {
		out := s.outgoing(st)
		s.say("send %q to %s, producer %d, durable %v", out.Payload, c, out.Offset, out.Durable)
		inbox := journal.InboxOf(c)
		unlogged := s.e.Volatile(inbox)
		sent, err := s.e.SendTo(s.sendContext(inbox), c, out)
		s.noteSent(inbox, out, unlogged, sent, err)
	}
}

// sendContext is the context to send with: where there is no store, one that does not
// wait for full mailboxes.
func (s *simulation) sendContext(ch journal.ChannelID) context.Context {
	if !s.e.Volatile(ch) {
		return s.ctx
	}
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	return ended
}

func (s *simulation) creature(n int) (journal.CreatureID, bool) {
	creatures, _, _ := s.e.Members()
	if len(creatures) == 0 {
		return "", false
	}
	return creatures[n%len(creatures)], true
}

func (s *simulation) channel(n int) (journal.ChannelID, bool) {
	_, channels, _ := s.e.Members()
	if len(channels) == 0 {
		return "", false
	}
	return channels[n%len(channels)], true
}

// most is the maximum number of creatures, and of channels, at a time.
const most = 7

func (s *simulation) addCreature(st step) {
	creatures, _, graphs := s.e.Members()
	if len(creatures) >= most {
		return
	}
	s.creatures++
	cs := spec(fmt.Sprintf("c%d", s.creatures), "sim")
	cs.Limits.Mailbox = 1 + st.a%6
	cs.Privileged = st.b%3 > 0
	cs.Restart = deploy.RestartPolicy{Attempts: 1 + st.b%3, Max: 1 << 20, Backoff: 20 * time.Millisecond}
	switch {
	case st.b%7 == 0:
		cs.Restart.Max = 2
	case st.b%7 == 1:
		cs.Restart.Mode = deploy.RestartAlways
	}
	if st.c%3 > 0 && len(creatures) > 0 {
		cs.Parent = creatures[st.a%len(creatures)]
	}
	if st.c%2 == 0 && len(graphs) > 0 {
		cs.Join = graphs[st.c/2%len(graphs)]
	}
	s.change("add "+cs.Name, func() error {
		_, err := s.e.AddCreature(s.ctx, cs)
		return err
	})
}

func (s *simulation) removeCreature(st step) {
	if c, ok := s.creature(st.a); ok {
		s.op(topology.RemoveCreature{ID: c})
	}
}

func (s *simulation) addChannel(st step) {
	_, channels, graphs := s.e.Members()
	if len(channels) >= most || len(graphs) == 0 {
		return
	}
	s.channels++
	name := fmt.Sprintf("h%d", s.channels)
	s.change("add channel "+name, func() error {
		_, err := s.e.AddChannel(s.ctx, graphs[st.a%len(graphs)], name, "")
		return err
	})
}

func (s *simulation) removeChannel(st step) {
	if ch, ok := s.channel(st.a); ok {
		s.op(topology.RemoveChannel{ID: ch})
	}
}

func (s *simulation) setEdge(st step) {
	c, ok := s.creature(st.a)
	ch, has := s.channel(st.b)
	if ok && has {
		s.op(topology.SetEdge{Creature: c, Channel: ch, Direction: journal.Direction(1 + st.c%2), On: st.c%5 > 0})
	}
}

func (s *simulation) connect(st step) {
	a, ok := s.creature(st.a)
	b, has := s.creature(st.b)
	_, channels, _ := s.e.Members()
	if ok && has && len(channels) < most {
		s.op(topology.Connect{From: a, To: b})
	}
}

func (s *simulation) disconnect(st step) {
	a, ok := s.creature(st.a)
	b, has := s.creature(st.b)
	if ok && has {
		s.op(topology.Disconnect{From: a, To: b})
	}
}

// toggle turns an edge or a creature off and on again, in one change.
func (s *simulation) toggle(st step) {
	c, ok := s.creature(st.a)
	ch, has := s.channel(st.b)
	if !ok || !has {
		return
	}
	if st.c%2 == 0 {
		s.op(topology.SetStopped{ID: c, Stopped: true}, topology.SetStopped{ID: c})
		return
	}
	if _, on := s.e.Listening()[engine.Edge{Creature: c, Channel: ch}]; on {
		edge := topology.SetEdge{Creature: c, Channel: ch, Direction: journal.Listen}
		again := edge
		again.On, again.Alias = true, s.e.Lives()[c].Aliases[engine.Bond{Channel: ch, Direction: journal.Listen}]
		s.op(edge, again)
	}
}

// rearrange may split and merge in one change, and removes.
func (s *simulation) rearrange(st step) {
	a, ok := s.creature(st.a)
	b, has := s.creature(st.b)
	ch, some := s.channel(st.c)
	_, channels, _ := s.e.Members()
	if !ok || !has || !some || len(channels) >= most {
		return
	}
	ops := []topology.Op{topology.SetEdge{Creature: a, Channel: ch, Direction: journal.Direction(1 + st.b%2)}, topology.Connect{From: a, To: b}}
	switch st.c % 5 {
	case 0:
		ops = append(ops, topology.RemoveChannel{ID: ch})
	case 1:
		ops = append([]topology.Op{topology.RemoveChannel{ID: ch}}, ops[1])
	case 2:
		ops = append(ops, topology.Disconnect{From: a, To: b})
	case 3:
		ops = append(ops, topology.RemoveCreature{ID: []journal.CreatureID{a, b}[st.b/2%2]})
	}
	s.op(ops...)
}

func (s *simulation) stopOrStart(st step) {
	if c, ok := s.creature(st.a); ok {
		s.op(topology.SetStopped{ID: c, Stopped: !s.e.Stopped(c)})
	}
}

// replace replaces the module of a creature by one that does the same. In the middle of a
// turn it would wait for the end of that turn.
func (s *simulation) replace(st step) {
	c, ok := s.creature(st.a)
	if !ok || s.depth > 0 {
		return
	}
	module := []string{"sim", "sim2"}[st.b%2]
	var replaced engine.Replaced
	done := s.change(fmt.Sprintf("replace the module of %s by %s", c, module), func() (err error) {
		replaced, err = s.e.ReplaceModule(s.ctx, c, engine.Replacement{Module: module})
		return err
	})
	if done && (replaced.Creature != c || replaced.SHA256 != "sha-of-"+module) {
		s.failf("%s has got %+v, want the module %s", c, replaced, module)
	}
}

// sweep makes creatures hibernate that have had no turn since the last sweep.
func (s *simulation) sweep(step) { s.e.Hibernate(s.ctx) }

func (s *simulation) redeliver(st step) {
	_, _, graphs := s.e.Members()
	if len(graphs) == 0 {
		return
	}
	g := graphs[st.a%len(graphs)]
	letters, err := s.e.DeadLetters(s.ctx, g, "", journal.EventID{}, 0)
	if err != nil || len(letters) == 0 {
		return
	}
	l := letters[st.b%len(letters)]
	if l.Reason == journal.DeadNotConnected && l.Alias == "" {
		return // astray says why
	}
	s.say("redeliver %s: %s for %s", l.ID, l.Reason, l.Creature)
	if sent, err := s.e.Redeliver(s.ctx, g, l.ID); err == nil {
		s.noteRedelivered(l, sent)
	}
}

func (s *simulation) advance(st step) {
	d := []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second, 6 * time.Second}[st.a%5]
	if st.b%20 == 0 {
		d = -d // the clock is set back
	}
	s.say("advance %s", d)
	s.clock.Advance(d)
	s.keepAhead()
	s.e.Ring()
}

func (s *simulation) write(st step) { s.disk.Write(st.a, 1+st.b%8, st.c%2 == 0) }

func (s *simulation) breakDisk(st step) {
	s.disk.Broken = st.a%2 == 0
	s.say("the disk is broken: %v", s.disk.Broken)
}

func (s *simulation) failNext(st step) {
	n := 1 + st.b%2
	switch st.a % 5 {
	case 0:
		s.disk.FailCuts = n
	case 1:
		s.disk.FailCreates = n
	case 2:
		s.disk.FailOpens = n
	case 3:
		s.disk.FailReads = n
	case 4:
		s.disk.FailRetires = n
	}
}

func (s *simulation) kill(step) {
	s.say("kill")
	s.disk.Kill()
}

func (s *simulation) powerLoss(step) {
	s.say("power loss")
	s.lost = true
	s.disk.PowerLoss()
}

func (s *simulation) crashCut(st step) {
	s.disk.CutCrash = sim.CutCrash(st.a % sim.NumCutCrashes)
	s.say("the next cut crashes at point %d", s.disk.CutCrash)
}

// restart closes the engine properly, and starts another one.
func (s *simulation) restart(step) {
	s.say("restart")
	s.disk.Broken, s.disk.FailRetires = false, 0 // which would make Close return an error
	if err := s.e.Close(context.Background()); err != nil {
		s.failf("Close: %v", err)
	}
	if n := s.host.open(); n != 0 {
		s.failf("%d instances are open after Close", n)
	}
	s.disk.Kill() // which must not make a difference
}

func (s *simulation) settleStep(step) {
	s.settle()
	s.check()
	s.checkArchive()
}
