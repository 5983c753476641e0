package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// showPlan prints what would change. With the name of a deployment in about, what
// concerns others stands under a heading of its own.
func showPlan(s streams, format string, p *diff.Plan, about string) error {
	if format == "json" {
		return printJSON(s, operations.NewPlanRecord(p))
	}
	w := planWriter{bufio.NewWriter(s.out)}
	for i := range p.Declared {
		w.declaration(&p.Declared[i])
	}
	others := w.members(p, func(deployment string) bool { return about == "" || deployment == about })
	if others {
		w.line("Of others in the directory:")
		w.members(p, func(deployment string) bool { return deployment != about })
	}
	for i := range p.Graphs {
		w.graph(&p.Graphs[i])
	}
	unknown := slices.ContainsFunc(p.Declared, func(d diff.DeclarationPlan) bool { return len(d.Unknown) > 0 }) ||
		slices.ContainsFunc(p.Creatures, func(c diff.CreaturePlan) bool { return len(c.Unknown) > 0 })
	switch {
	case p.Empty() && unknown:
		w.line("Nothing would change, unless what is not stored is something else than before.")
	case p.Empty():
		w.line("Nothing would change.")
	}
	return failWith(exitFailed, w.Flush())
}

// planWriter writes a plan as text. A line begins with + for what comes, - for
// what goes, ~ for what is different, = for what goes on as it was, and ? for what
// cannot be known.
type planWriter struct{ *bufio.Writer }

func (w planWriter) line(format string, args ...any) {
	fmt.Fprintln(w, printable(fmt.Sprintf(format, args...))) // a failure turns up when it is flushed
}

// members tells of the creatures and channels of some deployments, and reports
// whether there are others.
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

// declaration tells of policies and of what else no creature shows, if they come, go or
// change: the others are many.
func (w planWriter) declaration(d *diff.DeclarationPlan) {
	what := inFull(d.Deployment, d.Address, "")
	if known := w.whatBecomes(d.Action, what, d.Changes); !known && len(d.Unknown) > 0 {
		w.line("? %s: what it was is not stored (%s)", what, strings.Join(d.Unknown, ", "))
		return
	}
	for _, name := range d.Unknown {
		w.line("    ? %s: %s, set anew; what it was is not stored", name, deploy.HiddenValue)
	}
}

func (w planWriter) creature(c *diff.CreaturePlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	switch c.Action {
	case diff.PlanCreate:
		w.line("+ %s begins with nothing", what)
	case diff.PlanRemove:
		w.line("- %s goes; its history stays%s", what, buried(c.Buried))
	case diff.PlanResume:
		mark := "="
		if len(c.Changes) > 0 || c.Buried > 0 {
			mark = "~"
		}
		w.line("%s %s goes on%s%s", mark, what, waits(&c.Waiting), buried(c.Buried))
	}
	w.changes(c.Changes)
	for _, name := range c.Unknown {
		w.line("    ? config %s: %s, set anew; what it was is not stored", name, deploy.HiddenValue)
	}
}

// channel tells of channels that come, go or change: the others are many.
func (w planWriter) channel(c *diff.ChannelPlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	if c.Address == "" {
		what = "channel " + what
	}
	w.whatBecomes(c.Action, what, c.Changes)
}

// whatBecomes tells of something that comes, goes or changes, and reports whether it does.
func (w planWriter) whatBecomes(action diff.PlanAction, what string, changes []diff.PlanChange) bool {
	switch {
	case action == diff.PlanCreate:
		w.line("+ %s", what)
	case action == diff.PlanRemove:
		w.line("- %s goes", what)
	case len(changes) > 0:
		w.line("~ %s", what)
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
		w.line("+ %s", strings.Join(after, "; "))
	case journal.CutEnd:
		w.line("- %s ends", strings.Join(before, ", "))
	default:
		w.line("~ %s: %s → %s", g.Kind, strings.Join(before, ", "), strings.Join(after, "; "))
	}
}

// inFull calls a member by its deployment and its address or, if it has none, its
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

// waits tells what a creature finds.
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
		return "; 1 delivery becomes a dead letter"
	}
	return "; " + deliveries(n) + " become dead letters"
}
