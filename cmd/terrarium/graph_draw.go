package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// picture holds the graphs to draw. It is also their JSON form.
type picture struct {
	Graphs []drawnGraph `json:"graphs"`
	ids    bool         // labels include ids
}

type drawnGraph struct {
	ID        journal.GraphID   `json:"id"`
	Session   journal.SessionID `json:"session,omitempty"`
	Creatures []drawnCreature   `json:"creatures"`
	Channels  []drawnChannel    `json:"channels"`
	Edges     []drawnEdge       `json:"edges"`
	Wires     []drawnWire       `json:"wires"`
}

type drawnCreature struct {
	ID         journal.CreatureID    `json:"id"`
	Name       string                `json:"name"`
	Deployment string                `json:"deployment,omitempty"`
	State      journal.CreatureState `json:"state"`
	Privileged bool                  `json:"privileged"`
	Root       bool                  `json:"root"`
	Parent     journal.CreatureID    `json:"parent,omitempty"`
}

type drawnChannel struct {
	ID          journal.ChannelID `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
}

type drawnEdge struct {
	Creature  journal.CreatureID `json:"creature"`
	Channel   journal.ChannelID  `json:"channel"`
	Direction string             `json:"direction"` // listen or send
	Alias     string             `json:"alias"`     // the creature's name for the channel
}

// drawnWire is an output wire.
type drawnWire struct {
	ID   journal.WireID     `json:"id"`
	Name string             `json:"name,omitempty"`
	From journal.CreatureID `json:"from"`
	To   journal.CreatureID `json:"to"` // a creature, or root
	When string             `json:"when,omitempty"`
}

// label returns the name of the wire and the condition on outputs that it carries.
func (w *drawnWire) label() string {
	if w.When == "" {
		return cmp.Or(w.Name, "output")
	}
	return cmp.Or(w.Name, "output") + " when " + w.When
}

func newPicture() *picture { return &picture{Graphs: []drawnGraph{}} }

func newDrawnGraph(id journal.GraphID, session journal.SessionID) drawnGraph {
	return drawnGraph{
		ID: id, Session: session, Creatures: []drawnCreature{}, Channels: []drawnChannel{}, Edges: []drawnEdge{}, Wires: []drawnWire{},
	}
}

// add adds a graph. It sorts edges and wires by the age of their creatures and
// channels, so that the order does not depend on where the graph was read.
func (d *picture) add(g drawnGraph) {
	age := map[string]int{}
	for i := range g.Creatures {
		age[string(g.Creatures[i].ID)] = i
	}
	for i := range g.Channels {
		age[string(g.Channels[i].ID)] = i
	}
	slices.SortFunc(g.Edges, func(a, b drawnEdge) int {
		return cmp.Or(cmp.Compare(age[string(a.Creature)], age[string(b.Creature)]), cmp.Compare(age[string(a.Channel)], age[string(b.Channel)]),
			cmp.Compare(a.Direction, b.Direction))
	})
	slices.SortStableFunc(g.Wires, func(a, b drawnWire) int { return cmp.Compare(age[string(a.From)], age[string(b.From)]) })
	d.Graphs = append(d.Graphs, g)
}

// arrow is a line between two nodes of a drawing.
type arrow struct {
	from, to string
	label    string
	kind     string // edge, parent or wire
}

// nodes numbers the nodes of a drawing: creatures c0, c1, … and channels h0, h1, ….
func (d *picture) nodes() map[string]string {
	out := map[string]string{}
	creatures, channels := 0, 0
	for i := range d.Graphs {
		for _, c := range d.Graphs[i].Creatures {
			out[string(c.ID)] = fmt.Sprint("c", creatures)
			creatures++
		}
		for _, ch := range d.Graphs[i].Channels {
			out[string(ch.ID)] = fmt.Sprint("h", channels)
			channels++
		}
	}
	return out
}

// arrows lists the lines of a graph. A parent in another graph is drawn too; a parent
// that no longer exists is not.
func (g *drawnGraph) arrows(nodes map[string]string) (out []arrow) {
	names := map[journal.ChannelID]string{}
	for _, ch := range g.Channels {
		names[ch.ID] = ch.Name
	}
	add := func(from, to, label, kind string) {
		if a := (arrow{nodes[from], nodes[to], label, kind}); a.from != "" && a.to != "" {
			out = append(out, a)
		}
	}
	for _, e := range g.Edges {
		alias := e.Alias
		if alias == names[e.Channel] {
			alias = ""
		}
		if e.Direction == journal.Listen.String() {
			add(string(e.Channel), string(e.Creature), alias, "edge")
		} else {
			add(string(e.Creature), string(e.Channel), alias, "edge")
		}
	}
	for _, c := range g.Creatures {
		add(string(c.Parent), string(c.ID), "parent", "parent")
	}
	for _, w := range g.Wires {
		add(string(w.From), string(g.target(w)), w.label(), "wire")
	}
	return out
}

// target returns the creature at the end of a wire. The target "root" is the root of
// the source's deployment or, for a source without a deployment, the oldest root.
func (g *drawnGraph) target(w drawnWire) journal.CreatureID {
	if w.To != journal.ToRoot {
		return w.To
	}
	own := ""
	if i := slices.IndexFunc(g.Creatures, func(c drawnCreature) bool { return c.ID == w.From }); i >= 0 {
		own = g.Creatures[i].Deployment
	}
	for _, c := range g.Creatures { // oldest first
		if c.Root && (own == "" || c.Deployment == own) {
			return c.ID
		}
	}
	return ""
}

// label returns the text of a node.
func (d *picture) label(name, id string, more ...string) string {
	lines := []string{printable(strings.ReplaceAll(name, "\n", `\n`))}
	if d.ids && id != "" {
		lines = append(lines, id)
	}
	for _, m := range more {
		if m != "" {
			lines = append(lines, m)
		}
	}
	return strings.Join(lines, "\n")
}

// about describes what is unusual about a creature.
func (c *drawnCreature) about() string {
	var words []string
	if c.State != journal.Running {
		words = append(words, string(c.State))
	}
	switch {
	case c.Root:
		words = append(words, "root")
	case c.Privileged:
		words = append(words, "privileged")
	}
	return strings.Join(words, ", ")
}

// title returns the heading of a graph.
func (g *drawnGraph) title() string {
	if g.Session == "" {
		return "graph " + string(g.ID)
	}
	return fmt.Sprintf("graph %s, session %s", g.ID, g.Session)
}

// dot draws the graphs in the language of Graphviz.
func (d *picture) dot() string {
	var b strings.Builder
	b.WriteString("digraph terrarium {\n  rankdir = LR\n")
	nodes := d.nodes()
	for i := range d.Graphs {
		g := &d.Graphs[i]
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label = %s\n", i, dotString(g.title()))
		for _, c := range g.Creatures {
			fmt.Fprintf(&b, "    %s [shape = box, style = %s, label = %s]\n", nodes[string(c.ID)], c.dotStyle(), dotString(d.label(c.Name, string(c.ID), c.about())))
		}
		for _, ch := range g.Channels {
			fmt.Fprintf(&b, "    %s [shape = ellipse, label = %s]\n", nodes[string(ch.ID)], dotString(d.label(ch.Name, string(ch.ID))))
		}
		b.WriteString("  }\n")
	}
	styles := map[string]string{"edge": "solid", "parent": "dotted", "wire": "dashed"}
	for i := range d.Graphs {
		for _, a := range d.Graphs[i].arrows(nodes) {
			fmt.Fprintf(&b, "  %s -> %s [style = %s, label = %s]\n", a.from, a.to, styles[a.kind], dotString(d.label(a.label, "")))
		}
	}
	return b.String() + "}\n"
}

func (c *drawnCreature) dotStyle() string {
	switch {
	case c.State != journal.Running:
		return "dashed"
	case c.Root, c.Privileged:
		return "bold"
	}
	return "solid"
}

// mermaid draws the graphs as a Mermaid flowchart.
func (d *picture) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	nodes := d.nodes()
	for i := range d.Graphs {
		g := &d.Graphs[i]
		fmt.Fprintf(&b, "  subgraph g%d [%s]\n", i, mermaidString(g.title()))
		for _, c := range g.Creatures {
			fmt.Fprintf(&b, "    %s[%s]\n", nodes[string(c.ID)], mermaidString(d.label(c.Name, string(c.ID), c.about())))
		}
		for _, ch := range g.Channels {
			fmt.Fprintf(&b, "    %s([%s])\n", nodes[string(ch.ID)], mermaidString(d.label(ch.Name, string(ch.ID))))
		}
		b.WriteString("  end\n")
	}
	lines := map[string]string{"edge": "-->", "parent": "-.->", "wire": "==>"}
	for i := range d.Graphs {
		for _, a := range d.Graphs[i].arrows(nodes) {
			label := ""
			if a.label != "" {
				label = "|" + mermaidString(d.label(a.label, "")) + "|"
			}
			fmt.Fprintf(&b, "  %s %s%s %s\n", a.from, lines[a.kind], label, a.to)
		}
	}
	return b.String()
}
