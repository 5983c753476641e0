package diff

import "slices"

// About returns the part of the plan that concerns some deployments. It leaves
// out the unaffected creatures and channels of other deployments, but keeps
// those that are created, removed or changed, or are in a graph that merges or
// splits.
func (p *Plan) About(deployments ...string) *Plan {
	out := &Plan{Declared: []DeclarationPlan{}, Creatures: []CreaturePlan{}, Channels: []ChannelPlan{}, Graphs: p.Graphs, Problems: p.Problems}
	for i := range p.Declared {
		if d := p.Declared[i]; slices.Contains(deployments, d.Deployment) || !d.idle() {
			out.Declared = append(out.Declared, d)
		}
	}
	for i := range p.Creatures {
		if c := p.Creatures[i]; slices.Contains(deployments, c.Deployment) || c.Cut || !c.idle() {
			out.Creatures = append(out.Creatures, c)
		}
	}
	for i := range p.Channels {
		if ch := p.Channels[i]; slices.Contains(deployments, ch.Deployment) || !ch.idle() {
			out.Channels = append(out.Channels, ch)
		}
	}
	for _, o := range p.Outside {
		if slices.Contains(deployments, o.Deployment) || len(o.Requests) > 0 {
			out.Outside = append(out.Outside, o)
		}
	}
	for i := range p.Stops {
		if s := p.Stops[i]; slices.Contains(deployments, s.Deployment) || !s.idle() {
			out.Stops = append(out.Stops, s)
		}
	}
	for _, h := range p.Hints {
		if slices.Contains(deployments, h.Deployment) {
			out.Hints = append(out.Hints, h)
		}
	}
	return out
}

// idle reports whether a creature is unaffected.
func (c *CreaturePlan) idle() bool {
	return c.Action == PlanResume && len(c.Changes) == 0 && c.Buried == 0 && c.MovedFrom == ""
}

// idle reports whether a channel is unaffected.
func (c *ChannelPlan) idle() bool {
	return c.Action == PlanResume && len(c.Changes) == 0 && c.MovedFrom == ""
}
