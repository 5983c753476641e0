package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// showPlan prints what would change.
func showPlan(s streams, format string, p *engine.Plan) error {
	if format == "json" {
		return printJSON(s, terrarium.NewPlanRecord(p))
	}
	w := planWriter{bufio.NewWriter(s.out)}
	for i := range p.Creatures {
		w.creature(&p.Creatures[i])
	}
	for i := range p.Channels {
		w.channel(&p.Channels[i])
	}
	for i := range p.Graphs {
		w.graph(&p.Graphs[i])
	}
	if p.Empty() {
		w.line("Nothing would change.")
	}
	return failWith(exitFailed, w.Flush())
}

// planWriter writes a plan as text. A line begins with + for what comes, - for
// what goes, ~ for what is different, and = for what goes on as it was.
type planWriter struct{ *bufio.Writer }

func (w planWriter) line(format string, args ...any) {
	fmt.Fprintln(w, printable(fmt.Sprintf(format, args...))) // a failure turns up when it is flushed
}

func (w planWriter) creature(c *engine.CreaturePlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	switch c.Action {
	case engine.PlanCreate:
		w.line("+ %s begins with nothing", what)
	case engine.PlanRemove:
		w.line("- %s goes; its history stays%s", what, buried(c.Buried))
	case engine.PlanResume:
		mark := "="
		if len(c.Changes) > 0 || c.Buried > 0 {
			mark = "~"
		}
		w.line("%s %s goes on%s%s", mark, what, waits(&c.Waiting), buried(c.Buried))
	}
	w.changes(c.Changes)
}

// channel tells of channels that come, go or change: the others are many.
func (w planWriter) channel(c *engine.ChannelPlan) {
	what := inFull(c.Deployment, c.Address, c.Name)
	if c.Address == "" {
		what = "channel " + what
	}
	switch {
	case c.Action == engine.PlanCreate:
		w.line("+ %s", what)
	case c.Action == engine.PlanRemove:
		w.line("- %s goes", what)
	case len(c.Changes) > 0:
		w.line("~ %s", what)
	}
	w.changes(c.Changes)
}

func (w planWriter) changes(list []engine.PlanChange) {
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

func (w planWriter) graph(g *engine.GraphPlan) {
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
	case "begin":
		w.line("+ %s", strings.Join(after, "; "))
	case "end":
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
func waits(w *engine.Waiting) string {
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
