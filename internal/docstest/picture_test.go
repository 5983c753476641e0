package docstest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPicture runs the example rescue and draws its graphs after each step, as the
// README shows them. With -update it writes the pictures.
func TestPicture(t *testing.T) {
	steps, parents := rescue(t)
	readme := readRepository(t, "README.md")
	for name, colours := range map[string]palette{
		"light": {ink: "#1f2328", faint: "#59636e", card: "#ffffff", fill: [3]string{"#e6f4ea", "#e4eefb", "#f3e9fb"}, line: [3]string{"#2f8f4e", "#2f6fd0", "#8444c4"}},
		"dark":  {ink: "#f0f6fc", faint: "#9198a1", card: "#0d1117", fill: [3]string{"#12261a", "#121f36", "#241635"}, line: [3]string{"#4cc26d", "#5b9bf5", "#b883ee"}},
	} {
		page := "docs/pictures/merge-and-split-" + name + ".svg"
		if !strings.Contains(readme, `"`+page+`"`) {
			t.Errorf("README.md does not show %s", page)
		}
		path, got := filepath.Join(root, page), draw(steps, parents, colours)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if readRepository(t, page) != got {
			t.Errorf("%s is not what the example does: run go test ./internal/docstest -run TestPicture -update", page)
		}
	}
}

// drawnGraph is a graph as terrarium graph -o json describes it.
type drawnGraph struct {
	Session   string
	Creatures []struct{ ID, Name, Deployment string }
	Channels  []struct{ ID, Name string }
	Edges     []struct{ Creature, Channel, Direction string }
}

// rescue runs the example and returns its graphs after each step, and the parents
// of each session.
func rescue(t *testing.T) (steps [][]drawnGraph, parents map[string][]string) {
	t.Helper()
	session, env := filepath.Join(t.TempDir(), "S"), environment(t)
	read := func(command string, into any) {
		out, code := shell(t, root, command, env...)
		if code != 0 {
			t.Fatalf("%s\nends with %d and prints\n%s", command, code, out)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	for _, step := range []string{"1-apart", "2-together", "3-apart"} {
		var drawn struct{ Graphs []drawnGraph }
		read(fmt.Sprintf("terrarium exec --session %[1]s < examples/rescue/%[2]s.jsonl > %[1]s.out && terrarium graph %[1]s -o json", session, step), &drawn)
		steps = append(steps, drawn.Graphs)
	}
	var lineage struct {
		Lineage []struct {
			Session string
			Parents []string
		}
	}
	read("terrarium session lineage "+session+" -o json", &lineage)
	parents = map[string][]string{}
	for _, s := range lineage.Lineage {
		parents[s.Session] = s.Parents
	}
	return steps, parents
}

type palette struct {
	ink, faint, card string
	fill, line       [3]string // of the north, of the south, and of both
}

type point struct{ x, y float64 }

// places says where the creatures and channels of a panel are, by name.
var places = map[string]point{
	"calls": {50, 88}, "scouts": {140, 64}, "alarm": {140, 112}, "help": {226, 112},
	"calls~2": {50, 190}, "desk": {129, 190}, "flights": {206, 190}, "helicopter": {301, 190},
}

const (
	panelWidth = 370
	sessionsY  = 268
)

// draw draws the graphs of each step as a panel, and their sessions below it. The
// south calls its channel calls until a merge renames it; it has one place.
func draw(steps [][]drawnGraph, parents map[string][]string, p palette) string {
	captions := []string{"Two recipes run as two graphs.", "connect alarm → helicopter merges them.", "disconnect splits them again."}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d 356" font-family="ui-sans-serif, system-ui, sans-serif" font-size="15" text-anchor="middle" role="img">`+"\n", panelWidth*len(steps))
	b.WriteString("<title>Two graphs merge into one and split again, and so do their SQLite sessions</title>\n")
	fmt.Fprintf(&b, `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker></defs>`+"\n", p.faint)
	sessions := map[string]point{}
	for i, graphs := range steps {
		left := float64(i * panelWidth)
		slices.SortFunc(graphs, func(a, b drawnGraph) int { return a.kind() - b.kind() })
		fmt.Fprintf(&b, `<text x="%g" y="22" fill="%s" font-size="16" font-weight="600">%s</text>`+"\n", left+panelWidth/2, p.ink, captions[i])
		for j, g := range graphs {
			g.draw(&b, left, p)
			at := point{left + panelWidth/2, sessionsY + 22*float64(2-len(graphs)) + 44*float64(j)}
			for _, parent := range parents[g.Session] {
				if from, drawn := sessions[parent]; drawn {
					fmt.Fprintf(&b, `<path d="M%g %gC%g %g %g %g %g %g" stroke="%s" fill="none" marker-end="url(#tip)"/>`+"\n",
						from.x+94, from.y, from.x+150, from.y, at.x-150, at.y, at.x-96, at.y, p.faint)
				}
			}
			sessions[g.Session] = at
			history := []string{"history of north", "history of south", "both histories"}[g.kind()]
			if i == len(steps)-1 {
				history = "both, and its own since"
			}
			cylinder(&b, at, history, p.fill[g.kind()], p.line[g.kind()], p.ink)
		}
	}
	fmt.Fprintf(&b, `<text x="%g" y="350" fill="%s">Each graph has one session, an SQLite file. Arrows between sessions are their lineage.</text>`+"\n", panelWidth*float64(len(steps))/2, p.faint)
	b.WriteString("</svg>\n")
	return b.String()
}

// kind is 0 for a graph of the north, 1 of the south, 2 of both.
func (g *drawnGraph) kind() int {
	seen := map[string]bool{}
	for _, c := range g.Creatures {
		seen[c.Deployment] = true
	}
	switch {
	case seen["north"] && seen["south"]:
		return 2
	case seen["south"]:
		return 1
	}
	return 0
}

// draw draws a graph: a frame around its members, its edges, its members.
func (g *drawnGraph) draw(b *strings.Builder, left float64, p palette) {
	at := map[string]point{}
	low, high := point{math.Inf(1), math.Inf(1)}, point{}
	place := func(id, name string) {
		if name == "calls" && g.kind() == 1 {
			name = "calls~2"
		}
		here := places[name]
		here.x += left
		at[id] = here
		low = point{min(low.x, here.x), min(low.y, here.y)}
		high = point{max(high.x, here.x), max(high.y, here.y)}
	}
	half := map[string]float64{} // of the width of a creature
	for _, c := range g.Creatures {
		place(c.ID, c.Name)
		half[c.ID] = 3.6*float64(len(c.Name)) + 8
	}
	for _, c := range g.Channels {
		place(c.ID, c.Name)
	}
	fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" rx="16" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		low.x-42, low.y-27, high.x-low.x+95, high.y-low.y+54, p.fill[g.kind()], p.line[g.kind()])
	for _, e := range g.Edges {
		from, to, edge := at[e.Creature], at[e.Channel], 30.0 // how far its left edge is from where it is
		if e.Direction == "listen" {
			from, to, edge = to, from, half[e.Creature]
		}
		end := point{to.x - edge - 1, to.y}
		if math.Abs(to.y-from.y) > 60 {
			end = point{to.x, to.y - 15}
		}
		fmt.Fprintf(b, `<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" marker-end="url(#tip)"/>`+"\n", from.x, from.y, end.x, end.y, p.faint)
	}
	for _, c := range g.Channels {
		h := at[c.ID]
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="60" height="24" rx="12" fill="%s" stroke="%s" stroke-dasharray="3 2"/><text x="%g" y="%g" fill="%s" font-size="14">%s</text>`+"\n",
			h.x-30, h.y-12, p.card, p.faint, h.x, h.y+5, p.faint, c.Name)
	}
	for _, c := range g.Creatures {
		h, colour := at[c.ID], p.line[0]
		if c.Deployment == "south" {
			colour = p.line[1]
		}
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="30" rx="6" fill="%s" stroke="%s" stroke-width="1.5"/><text x="%g" y="%g" fill="%s">%s</text>`+"\n",
			h.x-half[c.ID], h.y-15, 2*half[c.ID], p.card, colour, h.x, h.y+5, p.ink, c.Name)
	}
}

// cylinder draws a session.
func cylinder(b *strings.Builder, at point, text, fill, line, ink string) {
	fmt.Fprintf(b, `<path d="M%[1]g %[3]gv26a92 5 0 0 0 184 0v-26" fill="%[4]s" stroke="%[5]s" stroke-width="1.5"/><ellipse cx="%[2]g" cy="%[3]g" rx="92" ry="5" fill="%[4]s" stroke="%[5]s" stroke-width="1.5"/><text x="%[2]g" y="%[6]g" fill="%[7]s">%[8]s</text>`+"\n",
		at.x-92, at.x, at.y-14, fill, line, at.y+8, ink, text)
}
