package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// drafts draws deployments, and the changes made while they run.
type drafts struct{ *rand.Rand }

func newDrafts(seed uint64) drafts { return drafts{rand.New(rand.NewPCG(seed, 7))} }

func (r drafts) once(in int) bool { return r.IntN(in) == 0 }

// deployment draws a deployment of up to four creatures on up to four channels.
func (r drafts) deployment(name string, rooted bool) *deploy.Deployment {
	d := &deploy.Deployment{Name: name, Source: deploy.Source{Path: name + ".hcl", Files: map[string]string{name + ".hcl": fmt.Sprint(r.Uint64())}}}
	worker := spec("", "sink")
	d.Species = []deploy.SpeciesSpec{{Name: "sp", Spec: worker, Spawnable: 8}}
	for i := range 4 {
		if i == 0 || !r.once(4) {
			d.Creatures = append(d.Creatures, r.creature(i))
		}
	}
	if rooted && r.once(2) {
		d.Root = d.Creatures[r.IntN(len(d.Creatures))].Address
	}
	for i := range d.Creatures {
		r.outputs(d, &d.Creatures[i])
	}
	declareChannels(d)
	return d
}

// declareChannels declares the channels that are used, and no others.
func declareChannels(d *deploy.Deployment) {
	d.Channels = nil
	for k := range 4 {
		address := channelAddress(k)
		used := slices.ContainsFunc(d.Creatures, func(c deploy.CreatureSpec) bool {
			return slices.ContainsFunc(append(slices.Clone(c.Listen), c.Send...), func(w deploy.WireSpec) bool { return w.Channel == address })
		})
		if used {
			d.Channels = append(d.Channels, deploy.ChannelSpec{Address: address, Name: fmt.Sprintf("k%d", k)})
		}
	}
}

func (r drafts) creature(i int) deploy.CreatureSpec {
	c := spec(fmt.Sprintf("m%d", i), []string{"sink", "relay", "count"}[r.IntN(3)])
	c.Address = memberAddress(i)
	c.Config = json.RawMessage(fmt.Sprintf(`{"v":%d}`, r.IntN(3)))
	c.Privileged, c.Stopped = r.once(4), r.once(6)
	c.Listen, c.Send = r.wires(), r.wires()
	return c
}

func (r drafts) wires() (out []deploy.WireSpec) {
	for k := range 4 {
		if r.once(3) {
			alias := ""
			if r.once(3) {
				alias = fmt.Sprintf("a%d", k)
			}
			out = append(out, deploy.WireSpec{Channel: channelAddress(k), Alias: alias})
		}
	}
	return out
}

// outputs draws output wires to neighbours: creatures that share a channel, or
// the root, which shares one with all.
func (r drafts) outputs(d *deploy.Deployment, c *deploy.CreatureSpec) {
	for i := range d.Creatures {
		to := &d.Creatures[i]
		near := slices.ContainsFunc(c.Send, func(w deploy.WireSpec) bool {
			return slices.ContainsFunc(to.Listen, func(l deploy.WireSpec) bool { return l.Channel == w.Channel })
		})
		if near && to != c && r.once(2) {
			c.Outputs = append(c.Outputs, deploy.OutputSpec{Name: []string{"", "w" + to.Name}[r.IntN(2)], To: to.Address, WithContent: r.once(2)})
		}
	}
}

// edit changes a deployment as an author with a text editor would.
func (r drafts) edit(d *deploy.Deployment, rooted bool) *deploy.Deployment {
	fresh := r.deployment(d.Name, rooted)
	out := *d
	out.Source, out.Creatures = fresh.Source, slices.Clone(d.Creatures)
	for i := range out.Creatures {
		if r.once(3) {
			c := r.creature(0)
			c.Name, c.Address = out.Creatures[i].Name, out.Creatures[i].Address
			if r.once(2) { // only its settings
				c.Listen, c.Send = out.Creatures[i].Listen, out.Creatures[i].Send
			}
			out.Creatures[i] = c
		}
	}
	for _, c := range fresh.Creatures {
		if r.once(2) && !slices.ContainsFunc(out.Creatures, func(o deploy.CreatureSpec) bool { return o.Address == c.Address }) {
			out.Creatures = append(out.Creatures, c)
		}
	}
	if len(out.Creatures) > 1 && r.once(3) {
		i := r.IntN(len(out.Creatures))
		out.Creatures = slices.Delete(out.Creatures, i, i+1)
	}
	has := func(address string) bool {
		return slices.ContainsFunc(out.Creatures, func(c deploy.CreatureSpec) bool { return c.Address == address })
	}
	if out.Root != "" && !has(out.Root) || rooted && r.once(4) {
		out.Root = ""
	}
	for i := range out.Creatures {
		c := &out.Creatures[i]
		if c.Outputs = nil; r.once(2) {
			r.outputs(&out, c)
		}
	}
	declareChannels(&out)
	return &out
}

// disturb changes a running graph as operations and tools do. Refused changes are left
// out.
func (r drafts) disturb(s *saved, steps int, assign bool) {
	for range steps {
		creatures, channels := members(s)
		if len(creatures) == 0 {
			return
		}
		a, b := creatures[r.IntN(len(creatures))], creatures[r.IntN(len(creatures))]
		err := s.Batch(s.t.Context(), func(batch *engine.Batch) error { return r.step(s.t, batch, a, b, channels, assign) })
		_ = err // many changes are refused, which does no harm
	}
}

func (r drafts) step(t testing.TB, b *engine.Batch, from, to journal.CreatureID, channels []journal.ChannelID, assign bool) (err error) {
	var ch journal.ChannelID
	if len(channels) > 0 {
		ch = channels[r.IntN(len(channels))]
	}
	direction := []journal.Direction{journal.Listen, journal.Send}[r.IntN(2)]
	switch n := r.IntN(14); n {
	case 0, 1, 2:
		_, _, err = b.AddCreature(t.Context(), deploy.CreatureSpec{Name: fmt.Sprintf("s%d", r.IntN(1000)), Species: "sp", Deployment: "d0", Parent: from, Join: b.GraphOf(from)})
	case 3, 4:
		_, err = b.Do(t.Context(), topology.SetEdge{Creature: from, Channel: ch, Direction: direction, On: true})
	case 5, 6:
		_, err = b.Do(t.Context(), topology.SetEdge{Creature: from, Channel: ch, Direction: direction})
	case 7:
		_, err = b.Do(t.Context(), topology.Connect{From: from, To: to})
	case 8:
		_, err = b.Do(t.Context(), topology.RemoveCreature{ID: from})
	case 9:
		_, err = b.Do(t.Context(), topology.RemoveChannel{ID: ch})
	case 10:
		_, err = b.AddWire(t.Context(), journal.OutputWire{From: from, To: to, Name: fmt.Sprintf("w%d", r.IntN(9)), WithContent: r.once(2)})
	case 11:
		_, err = b.Do(t.Context(), topology.SetStopped{ID: from, Stopped: r.once(2)})
	case 12:
		_, err = b.Do(t.Context(), topology.SetPrivileged{ID: from, Privileged: r.once(2)})
	default:
		if assign {
			_, err = b.AssignRoot(t.Context(), from)
		}
	}
	return err
}

// members lists the creatures, and the channels that are not inboxes.
func members(s *saved) (creatures []journal.CreatureID, channels []journal.ChannelID) {
	for _, g := range s.status() {
		for _, c := range g.Creatures {
			creatures = append(creatures, c.ID)
		}
		for _, ch := range g.Channels {
			channels = append(channels, ch.ID)
		}
	}
	return creatures, channels
}

// rest closes the engine, and returns what the stores contain.
func (s *saved) rest() []journal.SavedGraph {
	s.t.Helper()
	s.shut()
	s.open()
	return s.Saved()
}
