package engine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
	"github.com/seed47132306/terrarium/engine/topology"
)

// TestRootsGiveWhatTheDefinitionSays applies random operations to two deployments and to
// creatures of none.
func TestRootsGiveWhatTheDefinitionSays(t *testing.T) {
	for seed := range seeds(t, 30) {
		t.Run(fmt.Sprint("volatile/", seed), func(t *testing.T) {
			w := newWorld(t, engine.Options{Host: operators()})
			p := newRootProgram(t, seed, w)
			for range 40 {
				p.step()
			}
		})
	}
	for seed := range seeds(t, 3) {
		t.Run(fmt.Sprint("saved/", seed), func(t *testing.T) {
			s := newSaved(t, engine.Options{Host: operators()})
			p := newRootProgram(t, seed, s.world)
			for range 5 {
				for range 8 {
					p.step()
				}
				s.wait()
				s.reopen()
				p.w, p.m.w = s.world, s.world
				p.m.check(t, "after a restart")
			}
		})
	}
}

type rootProgram struct {
	t   *testing.T
	r   *rand.Rand
	w   *world
	m   *rootModel
	n   int
	all []journal.CreatureID
}

func newRootProgram(t *testing.T, seed uint64, w *world) *rootProgram {
	p := &rootProgram{t: t, r: rand.New(rand.NewPCG(seed, 7)), w: w, m: newRootModel(w)}
	for i, name := range []string{"red", "blue"} {
		d := crew(name)
		if seed%3 != uint64(i) {
			d.Root = "creature.lead"
		}
		p.applied(d, w.apply(d))
	}
	for i := range 3 {
		id := w.add(fmt.Sprint("loose", i), "operator")
		p.m.addCreature(id, "")
		p.all = append(p.all, id)
	}
	p.m.check(t, "at first")
	return p
}

// applied adds a deployment to the model.
func (p *rootProgram) applied(d *deploy.Deployment, a *engine.Applied) {
	for _, c := range d.Creatures {
		p.m.addCreature(a.Creatures[c.Address], d.Name)
		p.m.creatures[a.Creatures[c.Address]].privileged = c.Privileged
		p.all = append(p.all, a.Creatures[c.Address])
	}
	for _, address := range slices.Sorted(maps.Keys(a.Channels)) {
		id := a.Channels[address]
		p.m.channels[id] = &rootChannel{deployment: d.Name, report: address == "channel."+deploy.ReportChannel, born: p.m.next()}
	}
	for _, c := range d.Creatures {
		for _, e := range c.Listen {
			p.m.own(a.Creatures[c.Address], a.Channels[e.Channel], journal.Listen, "")
		}
		for _, e := range c.Send {
			p.m.own(a.Creatures[c.Address], a.Channels[e.Channel], journal.Send, "")
		}
	}
	if d.Root == "" {
		return
	}
	root := a.Creatures[d.Root]
	p.m.roots[d.Name] = root
	p.m.creatures[root].privileged = true
	for _, id := range a.Channels {
		p.m.give(root, id, journal.Listen, "")
	}
	for _, c := range a.Creatures {
		if c != root {
			p.m.give(c, p.m.report(d.Name), journal.Send, deploy.ReportChannel)
		}
	}
}

func (p *rootProgram) any() journal.CreatureID { return p.all[p.r.IntN(len(p.all))] }

func (p *rootProgram) anyChannel() journal.ChannelID {
	ids := slices.SortedFunc(maps.Keys(p.m.channels), func(a, b journal.ChannelID) int {
		return cmp.Or(cmp.Compare(p.m.channels[a].born, p.m.channels[b].born), cmp.Compare(a, b))
	})
	return ids[p.r.IntN(len(ids))]
}

func (p *rootProgram) name(what string) string {
	p.n++
	return fmt.Sprint(what, p.n)
}

func (p *rootProgram) step() {
	p.t.Helper()
	steps := []func() string{p.join, p.join, p.channel, p.tool, p.connect, p.edgeOn, p.edgeOff, p.edgeOff, p.remove, p.removeChannel, p.assign, p.assign}
	when := fmt.Sprint("step ", p.n, ": ", steps[p.r.IntN(len(steps))]())
	p.m.tidy()
	p.m.check(p.t, when)
}

func (p *rootProgram) join() string {
	near := p.any()
	var members []journal.CreatureID
	creatures, _ := p.m.places()
	g := creatures[near]
	for id, in := range creatures {
		if in == creatures[near] {
			members = append(members, id)
		}
	}
	var parent journal.CreatureID
	if p.r.IntN(2) == 0 {
		parent = near
	}
	var id journal.CreatureID
	var direct journal.ChannelID
	p.w.try(func(b *engine.Batch) error {
		s := spec(p.name("n"), "operator")
		s.Join, s.Parent = g, parent
		added, out, err := b.AddCreature(p.t.Context(), s)
		id, direct = added.Creature, out.Channel
		return err
	})
	p.all = append(p.all, id)
	p.m.join(id, parent, direct, members)
	return fmt.Sprintf("join %s below %q", id, parent)
}

func (p *rootProgram) channel() string {
	near := p.any()
	creatures, _ := p.m.places()
	var members []journal.CreatureID
	for id, in := range creatures {
		if in == creatures[near] {
			members = append(members, id)
		}
	}
	out, err := p.w.AddChannel(p.t.Context(), creatures[near], p.name("ch"), "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.m.addChannel(out.Channel, p.m.creatures[p.m.elder(members)].deployment)
	return "add a channel"
}

// tool makes a privileged creature declare a channel.
func (p *rootProgram) tool() string {
	id := p.any()
	c, _ := p.w.creature(id)
	if !c.Privileged || c.ModuleSHA256 != "sha-of-operator" {
		return "nothing"
	}
	result, err := p.w.Tool(p.t.Context(), id, "group_channel", fmt.Appendf(nil, `{"action": "create", "name": %q}`, p.name("tool")))
	var made tools.ChannelResult
	if err == nil {
		err = json.Unmarshal(result, &made)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.m.addChannel(made.Channel, p.m.creatures[id].deployment)
	return "a tool's channel"
}

func (p *rootProgram) connect() string {
	from, to := p.any(), p.any()
	alias := p.name("x")
	out := p.w.change(topology.Connect{From: from, To: to, Name: p.name("of"), Alias: alias})
	d := p.m.creatures[from].deployment
	if d != p.m.creatures[to].deployment {
		d = ""
	}
	p.m.own(from, out.Channel, journal.Send, alias)
	p.m.own(to, out.Channel, journal.Listen, alias)
	p.m.addChannel(out.Channel, d)
	return fmt.Sprintf("connect %s to %s", from, to)
}

func (p *rootProgram) edgeOn() string {
	c, ch, d, alias := p.any(), p.anyChannel(), journal.Direction(1+p.r.IntN(2)), p.name("x")
	p.w.change(topology.SetEdge{Creature: c, Channel: ch, Direction: d, On: true, Alias: alias})
	p.m.own(c, ch, d, alias)
	return fmt.Sprint("wire ", c, " to ", ch)
}

// edgeOff removes an edge, for whatever reason it exists.
func (p *rootProgram) edgeOff() string {
	c := p.any()
	info, _ := p.w.creature(c)
	list, d := info.Listen, journal.Listen
	if p.r.IntN(3) == 0 {
		list, d = info.Send, journal.Send
	}
	if len(list) == 0 {
		return "nothing"
	}
	e := rootEdge{c, list[p.r.IntN(len(list))], d}
	p.w.change(topology.SetEdge{Creature: e.creature, Channel: e.channel, Direction: e.direction})
	delete(p.m.edges, e)
	return fmt.Sprintf("unwire %+v", e)
}

func (p *rootProgram) remove() string {
	if len(p.all) < 5 {
		return "nothing"
	}
	i := p.r.IntN(len(p.all))
	id := p.all[i]
	p.all = slices.Delete(p.all, i, i+1)
	p.w.change(topology.RemoveCreature{ID: id})
	p.m.removeCreature(id)
	return fmt.Sprint("remove ", id)
}

func (p *rootProgram) removeChannel() string {
	if len(p.m.channels) < 3 {
		return "nothing"
	}
	id := p.anyChannel()
	p.w.change(topology.RemoveChannel{ID: id})
	p.m.removeChannel(id)
	return fmt.Sprint("remove ", id)
}

func (p *rootProgram) assign() string {
	id := p.any()
	creatures, channels := p.m.places()
	rooted, err := p.w.AssignRoot(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	p.m.assign(id, rooted.Channels[0], creatures, channels)
	return fmt.Sprint("assign ", id)
}
