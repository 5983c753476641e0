package main

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// showPlan prints what would change. If about names a deployment, changes of others
// follow under a heading of their own.
func showPlan(s streams, format string, p *diff.Plan, about string) error {
	if format == "json" {
		return printJSON(s, operations.NewPlanRecord(p))
	}
	w := planWriter{bufio.NewWriter(s.out)}
	brief := briefly(p)
	for i := range p.Declared {
		if d := &p.Declared[i]; !brief[inFull(d.Deployment, memberOf(d.Address), "")] {
			w.declaration(d)
		}
	}
	others := w.members(p, func(deployment string) bool { return about == "" || deployment == about })
	if others {
		w.line("Other recipes in the directory:")
		w.members(p, func(deployment string) bool { return deployment != about })
	}
	for i := range p.Graphs {
		w.graph(&p.Graphs[i])
	}
	for i := range p.Stops {
		w.stop(&p.Stops[i])
	}
	w.outside(p.Outside)
	for _, h := range p.Hints {
		if about == "" || h.Deployment == about {
			w.line("Was %s renamed to %s? To keep its state and history, add to the recipe of %s:", h.From, h.To, h.Deployment)
			w.line("    moved {")
			w.line("      from = %s", h.From)
			w.line("      to   = %s", h.To)
			w.line("    }")
		}
	}
	unknown := slices.ContainsFunc(p.Declared, func(d diff.DeclarationPlan) bool { return len(d.Unknown) > 0 }) ||
		slices.ContainsFunc(p.Creatures, func(c diff.CreaturePlan) bool { return len(c.Unknown) > 0 })
	switch {
	case p.Empty() && unknown:
		w.line("Nothing would change, unless a value that is not stored is different now.")
	case p.Empty():
		w.line("Nothing would change.")
	}
	return failWith(exitFailed, w.Flush())
}

// briefly returns the creatures and channels that are created or removed, which says enough
// about their settings.
func briefly(p *diff.Plan) map[string]bool {
	out := map[string]bool{}
	for i := range p.Creatures {
		if c := &p.Creatures[i]; c.Action != diff.PlanResume {
			out[inFull(c.Deployment, c.Address, c.Name)] = true
		}
	}
	for i := range p.Channels {
		if ch := &p.Channels[i]; ch.Action != diff.PlanResume {
			out[inFull(ch.Deployment, ch.Address, ch.Name)] = true
		}
	}
	return out
}

// memberOf returns the creature of an output wire, by their addresses, and any other address
// as it is.
func memberOf(address string) string {
	if at := strings.LastIndex(address, ".wire."); at > 0 {
		return address[:at]
	}
	return address
}

// planWriter writes a plan as text. A line begins with + for creation, - for removal,
// ~ for a change, = for resuming unchanged, and ? for a difference that cannot be
// known.
type planWriter struct{ *bufio.Writer }

func (w planWriter) line(format string, args ...any) {
	fmt.Fprintln(w, oneLine(fmt.Sprintf(format, args...))) // Flush reports failures
}

// members writes the creatures and channels of the deployments for which of is true.
// It reports whether there are others.
func (w planWriter) members(p *diff.Plan, of func(deployment string) bool) (others bool) {
	for i := range p.Creatures {
		if c := &p.Creatures[i]; of(c.Deployment) {
			w.creature(c)
		} else {
			others = true
		}
	}
	for i := range p.Channels {
		if ch := &p.Channels[i]; of(ch.Deployment) {
			w.channel(ch)
		} else {
			others = true
		}
	}
	return others
}

// declaration writes changes of policies and other declarations. It leaves out the many
// that do not change.
func (w planWriter) declaration(d *diff.DeclarationPlan) {
	what := inFull(d.Deployment, d.Address, "")
	if known := w.whatBecomes(d.Action, what, d.Changes); !known && len(d.Unknown) > 0 {
		w.line("? %s: the previous value is not stored (%s)", what, strings.Join(d.Unknown, ", "))
		return
	}
	for _, name := range d.Unknown {
		w.line("    ? %s: %s, set again; the previous value is not stored", name, deploy.HiddenValue)
	}
}

func (w planWriter) creature(c *diff.CreaturePlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	switch c.Action {
	case diff.PlanCreate:
		w.line("+ %s will be created", what)
	case diff.PlanRemove:
		w.line("- %s will be removed (history kept)%s", what, buried(c.Buried))
	case diff.PlanResume:
		mark := "="
		if len(c.Changes) > 0 || c.Buried > 0 || c.MovedFrom != "" {
			mark = "~"
		}
		w.line("%s %s will resume%s%s%s", mark, what, movedFrom(c.MovedFrom), waits(&c.Waiting), buried(c.Buried))
	}
	w.changes(c.Changes)
	for _, name := range c.Unknown {
		w.line("    ? config %s: %s, set again; the previous value is not stored", name, deploy.HiddenValue)
	}
}

// channel writes the changes of a channel. It leaves out the many that do not change.
func (w planWriter) channel(c *diff.ChannelPlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	if c.Address == "" {
		what = "channel " + what
	}
	if c.MovedFrom != "" {
		w.line("~ %s will stay%s", what, movedFrom(c.MovedFrom))
		w.changes(c.Changes)
		return
	}
	w.whatBecomes(c.Action, what, c.Changes)
}

func movedFrom(address string) string {
	if address == "" {
		return ""
	}
	return ", moved from " + address
}

// whatBecomes writes a creation, removal or change, and reports whether there is one.
func (w planWriter) whatBecomes(action diff.PlanAction, what string, changes []diff.PlanChange) bool {
	switch {
	case action == diff.PlanCreate:
		w.line("+ %s will be created", what)
	case action == diff.PlanRemove:
		w.line("- %s will be removed", what)
	case len(changes) > 0:
		w.line("~ %s will change", what)
	default:
		return false
	}
	w.changes(changes)
	return true
}

func (w planWriter) changes(list []diff.PlanChange) {
	for _, c := range list {
		what := strings.TrimSpace(c.What + " " + c.Of)
		switch {
		case c.Before == "":
			w.line("    + %s: %s", what, c.After)
		case c.After == "":
			w.line("    - %s: %s", what, c.Before)
		default:
			w.line("    ~ %s: %s → %s", what, c.Before, c.After)
		}
	}
}

func (w planWriter) graph(g *diff.GraphPlan) {
	var before, after []string
	for _, id := range g.Before {
		before = append(before, string(id))
	}
	for _, part := range g.After {
		name := "a new graph"
		if part.Graph != "" {
			name = string(part.Graph)
		}
		after = append(after, fmt.Sprintf("%s (%s)", name, strings.Join(part.Members, ", ")))
	}
	switch g.Kind {
	case journal.CutBegin:
		w.line("+ %s will begin", strings.Join(after, "; "))
	case journal.CutEnd:
		w.line("- %s will end", strings.Join(before, ", "))
	default:
		w.line("~ %s: %s → %s", g.Kind, strings.Join(before, ", "), strings.Join(after, "; "))
	}
}

// stop writes what becomes of a recipe with blocks stop_when.
func (w planWriter) stop(s *diff.StopPlan) {
	in := cmp.Or(string(s.Graph), "a new graph")
	switch s.Action {
	case diff.StopBegins:
		w.line("~ %s will stop at once in %s, because %s holds: %s", s.Deployment, in, s.Condition, s.Reason)
	case diff.StopStays:
		w.line("= %s will stay stopped in %s, because %s holds: %s", s.Deployment, in, s.Condition, s.Reason)
	case diff.StopEnds:
		w.line("~ %s will continue in %s, because %s no longer holds", s.Deployment, in, s.Condition)
	}
}

// inFull returns the deployment of a member and its address or, if it has none, its
// name.
func inFull(deployment, address, name string) string {
	if address == "" {
		address = name
	}
	if deployment == "" {
		return address
	}
	return deployment + ": " + address
}

// waits describes what waits for a creature.
func waits(w *diff.Waiting) string {
	var parts []string
	if w.Deliveries > 0 {
		parts = append(parts, deliveries(w.Deliveries)+" waiting")
	}
	if w.Timers > 0 {
		parts = append(parts, count(w.Timers, "timer"))
	}
	if w.Requests > 0 {
		parts = append(parts, count(w.Requests, "open request"))
	}
	if w.DeadLetters > 0 {
		parts = append(parts, count(w.DeadLetters, "dead letter"))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", with " + strings.Join(parts, ", ")
}

func buried(n uint64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 delivery will become a dead letter"
	}
	return "; " + deliveries(n) + " will become dead letters"
}
