package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
)

// plan describes a deployment by numbers: a few creatures on a few channels.
type plan struct {
	name               string
	creatures, wiring  int
	volatile, withRoot bool
}

// deployments is the number of deployments.
const deployments = 2

// planOf makes a plan from the numbers of a step.
func planOf(st step) plan {
	return plan{
		name: fmt.Sprintf("d%d", st.a%deployments), creatures: 1 + st.b%3, wiring: st.b / 3,
		volatile: st.c%3 > 0, withRoot: st.c%7 == 0,
	}
}

func memberAddress(i int) string  { return fmt.Sprintf("creature.m%d", i) }
func channelAddress(i int) string { return fmt.Sprintf("channel.k%d", i) }

// deployment is the plan as the engine takes it. Each creature listens on one channel and
// sends on another, depending on the wiring.
func (p plan) deployment() *deploy.Deployment {
	d := &deploy.Deployment{Name: p.name, Source: deploy.Source{Path: p.name + ".hcl", Files: map[string]string{p.name + ".hcl": fmt.Sprint(p)}}}
	if p.name == guarded {
		d.Policy = gatekeeper()
	}
	if p.volatile {
		none := journal.Volatile
		d.Session.Durability = &none
	}
	worker := spec("", "sim")
	worker.Limits.Mailbox = 1 + p.wiring%5
	worker.Restart = deploy.RestartPolicy{Attempts: 2, Max: 1 << 20, Backoff: 20 * time.Millisecond}
	d.Species = []deploy.SpeciesSpec{{Name: "sp", Spec: worker, Spawnable: 1 + p.wiring%2}}
	d.Session.AllowMerge = p.wiring%4 > 0
	used := map[string]bool{}
	for i := range p.creatures {
		c := spec(fmt.Sprintf("c%d", 1+(p.wiring+i)%4), "sim") // with another wiring they exchange names
		c.Address = memberAddress(i)
		c.Privileged = i == 0
		c.Limits.Mailbox = 1 + (p.wiring+i)%5
		c.Restart = deploy.RestartPolicy{Attempts: 2, Max: 1 << 20, Backoff: 20 * time.Millisecond}
		c.Overflow = deploy.Overflow(p.wiring % 3)
		in, out := channelAddress((p.wiring+i)%2), channelAddress((p.wiring/2+i)%3)
		c.Listen = []deploy.WireSpec{{Channel: in}}
		c.Send = []deploy.WireSpec{{Channel: out}}
		used[in], used[out] = true, true
		d.Creatures = append(d.Creatures, c)
	}
	for i := range 3 {
		if a := channelAddress(i); used[a] {
			d.Channels = append(d.Channels, deploy.ChannelSpec{Address: a, Name: fmt.Sprintf("k%d", i)})
		}
	}
	if p.withRoot {
		d.Root = memberAddress(0)
	}
	return d
}

// deploy applies a deployment. A running deployment is changed, but not in the middle of
// a turn, which would have to end first.
func (s *simulation) deploy(st step) {
	if p := planOf(st); s.depth == 0 || !s.runs(p.name) {
		s.apply(p)
	}
}

// runs reports whether creatures of a deployment run: because this process has applied
// it, or because of a Restore.
func (s *simulation) runs(deployment string) bool {
	for _, g := range s.statusNow() {
		for _, c := range g.Creatures {
			if c.Deployment == deployment && c.Address != "" {
				return true
			}
		}
	}
	return false
}

func (s *simulation) apply(p plan) {
	d := p.deployment()
	var applied *engine.Applied
	s.applying = d
	defer func() { s.applying = nil }()
	ok := s.change(fmt.Sprintf("apply %+v", p), func() (err error) {
		applied, err = s.e.Apply(s.ctx, d)
		return err
	})
	if !ok {
		return
	}
	updated := s.applied[p.name]
	s.applied[p.name], s.plans[p.name] = true, p
	s.checkApplied(d, applied, updated)
}

// checkApplied checks that a deployment is as its plan says. If it was running already,
// later additions and stopped creatures stay as they are.
func (s *simulation) checkApplied(d *deploy.Deployment, applied *engine.Applied, updated bool) {
	status, err := s.e.Status("")
	if err != nil {
		s.failf("Status: %v", err)
	}
	members, homes := map[journal.CreatureID]inspect.CreatureStatus{}, map[journal.CreatureID]journal.GraphID{}
	for _, g := range status {
		for _, c := range g.Creatures {
			if c.Deployment == d.Name && c.Address != "" { // not added to the deployment from outside
				members[c.ID], homes[c.ID] = c, g.ID
			}
		}
	}
	if len(members) != len(d.Creatures) {
		s.failf("%s has %d creatures, want %d", d.Name, len(members), len(d.Creatures))
	}
	for _, c := range d.Creatures {
		m, ok := members[applied.Creatures[c.Address]]
		if !ok || m.Address != c.Address || m.State == "stopped" && !updated {
			s.failf("%s of %s does not exist or does not run: %+v", c.Address, d.Name, m)
		}
		if !numbered(m.Name, c.Name) {
			s.failf("%s of %s is called %s, want %s", c.Address, d.Name, m.Name, c.Name)
		}
		if found, err := s.e.FindCreature(homes[m.ID], m.Name); err != nil || found != m.ID {
			s.failf("the name %s in %s is that of %s, want %s: %v", m.Name, homes[m.ID], found, m.ID, err)
		}
		for _, w := range c.Listen {
			if !slices.Contains(m.Listen, applied.Channels[w.Channel]) {
				s.failf("%s of %s does not listen on %s", c.Address, d.Name, w.Channel)
			}
		}
		m.Listen, m.Send = s.ruled(m.Listen, applied), s.ruled(m.Send, applied)
		if d.Root == "" && !updated && (len(m.Listen) != len(c.Listen) || len(m.Send) != len(c.Send) || m.Send[0] != applied.Channels[c.Send[0].Channel]) {
			s.failf("%s of %s listens on %v and sends on %v, want %v and %v", c.Address, d.Name, m.Listen, m.Send, c.Listen, c.Send)
		}
	}
}

// numbered reports whether a creature has a name, perhaps with numbers appended.
func numbered(is, name string) bool { return is == name || strings.HasPrefix(is, name+"~") }

// reapply applies what was applied before the restart, some of it changed, while its
// graphs are still dormant.
func (s *simulation) reapply() {
	s.applied = map[string]bool{}
	for i := range deployments {
		p, ok := s.plans[fmt.Sprintf("d%d", i)]
		if !ok || s.random.IntN(2) == 0 && p.name != guarded {
			continue
		}
		if s.random.IntN(2) == 0 {
			changed := planOf(drawStep(s.random))
			changed.name = p.name
			p = changed
		}
		if s.random.IntN(8) == 0 {
			s.disk.CutCrash = sim.CutCrash(s.random.IntN(sim.NumCutCrashes))
		}
		s.apply(p)
		s.disk.CutCrash = sim.NoCrash
		if s.disk.Crashed() {
			return
		}
	}
}

// ruled leaves out the channels that are not the recipe's, once there has been a Restore:
// those that it has restored stay.
func (s *simulation) ruled(channels []journal.ChannelID, applied *engine.Applied) []journal.ChannelID {
	if s.boots == 1 {
		return channels
	}
	own := slices.Collect(maps.Values(applied.Channels))
	return slices.DeleteFunc(slices.Clone(channels), func(id journal.ChannelID) bool { return !slices.Contains(own, id) })
}
