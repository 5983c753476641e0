package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// savedGraph is a graph with everything that is drawn in its own way, and rows in
// no order.
func savedGraph() *journal.SavedGraph {
	return &journal.SavedGraph{
		Session: "s1", Graph: "g1",
		Creatures: []journal.CreatureRow{
			{ID: "c3", Name: "asleep", Deployment: "team", Born: 3, Stopped: true, Parent: "c1"},
			{ID: "c1", Name: "boss", Deployment: "team", Born: 1, Root: true, Privileged: true},
			{ID: "c2", Name: "deputy", Born: 2, Privileged: true, Parent: "elsewhere"},
		},
		Channels: []journal.ChannelRow{
			{ID: "h2", Name: "reports", Born: 2, Description: "what was found"},
			{ID: "inbox:c1", Name: "inbox", Inbox: "c1"},
			{ID: "h1", Name: "tasks", Born: 1},
		},
		Edges: []journal.EdgeRow{
			{Creature: "c3", Channel: "h2", Direction: journal.Send, Alias: "out", Order: 3},
			{Creature: "c2", Channel: "h1", Direction: journal.Listen, Alias: "tasks", Order: 2},
			{Creature: "c1", Channel: "h1", Direction: journal.Send, Alias: "tasks", Order: 1},
			{Creature: "c3", Channel: "h1", Direction: journal.Listen, Alias: "work", Order: 4},
		},
		Wires: []journal.OutputWire{
			{ID: "w2", From: "c3", To: journal.ToRoot, Order: 2, Name: "answers", When: "long"},
			{ID: "w1", From: "c3", To: "c2", Order: 1},
			{ID: "w3", From: "c1", To: "gone", Order: 3},
		},
	}
}

func hostileGraph() *journal.SavedGraph {
	return &journal.SavedGraph{
		Graph: "g2",
		Creatures: []journal.CreatureRow{
			{ID: "c9", Name: "\"]; evil -> \\\n<b>&#lt;`x` \x1b[31m\xff", Born: 1},
			{ID: "c8", Name: "end", Born: 2},
		},
		Channels: []journal.ChannelRow{{ID: "h9", Name: "a|b\r\"", Born: 1}},
		Edges:    []journal.EdgeRow{{Creature: "c9", Channel: "h9", Direction: journal.Send, Alias: "|]\")", Order: 1}},
		Wires:    []journal.OutputWire{{ID: "w9", From: "c9", To: "c8", Name: "\"|\n]"}},
	}
}

// TestGraphDrawings compares the drawings of some graphs.
func TestGraphDrawings(t *testing.T) {
	for name, graphs := range map[string][]*journal.SavedGraph{
		"none": nil, "usual": {savedGraph()}, "hostile": {hostileGraph()}, "two": {savedGraph(), hostileGraph()},
	} {
		p := newPicture()
		for _, g := range graphs {
			p.addSaved(g)
		}
		for format, write := range graphFormats {
			for _, p.ids = range []bool{false, name == "two"} {
				var b bytes.Buffer
				if err := write(streams{out: &b}, p); err != nil {
					t.Fatal(err)
				}
				file := name
				if p.ids && format != "json" {
					file += "-ids"
				}
				golden(t, filepath.Join("testdata", "graph", file+"."+format), b.Bytes())
			}
		}
	}
}

// Whatever the names are, a drawing has one line for each creature and
// channel and edge, and every quoted text ends on its line.
func TestGraphNamesStayInTheirPlace(t *testing.T) {
	dotLine := regexp.MustCompile(`^( *(c|h)\d+ \[[^"]*label = "([^"\\]|\\.)*"\]|  (c|h)\d+ -> (c|h)\d+ \[style = solid, label = "([^"\\]|\\.)*"\])$`)
	mermaidLine := regexp.MustCompile(`^( *c\d+\["[^"]*"\]| *h\d+\(\["[^"]*"\]\)|  (c|h)\d+ -->(\|"[^"]*"\|)? (c|h)\d+)$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringMatching(`["\\\n\[\](){}|#;&<>`+"`"+`-]*`))
		g := &journal.SavedGraph{Graph: "g"}
		for i := range 3 {
			c, ch := journal.CreatureID(fmt.Sprint("c", i)), journal.ChannelID(fmt.Sprint("h", i))
			g.Creatures = append(g.Creatures, journal.CreatureRow{ID: c, Name: name.Draw(t, "creature"), Born: uint64(i)})
			g.Channels = append(g.Channels, journal.ChannelRow{ID: ch, Name: name.Draw(t, "channel"), Born: uint64(i)})
			g.Edges = append(g.Edges, journal.EdgeRow{Creature: c, Channel: ch, Direction: journal.Send, Alias: name.Draw(t, "alias"), Order: uint64(i)})
		}
		p := newPicture()
		p.addSaved(g)
		for text, line := range map[string]*regexp.Regexp{p.dot(): dotLine, p.mermaid(): mermaidLine} {
			found := 0
			for l := range strings.SplitSeq(text, "\n") {
				if line.MatchString(l) {
					found++
				}
			}
			frame := strings.Count(text, "\n") - found
			if found != 9 || frame > 7 {
				t.Fatalf("%d lines are of nodes and edges, and %d others:\n%s", found, frame, text)
			}
		}
	})
}

// A recipe is drawn without running any part of it, and the drawing is always the same.
func TestGraphOfARecipe(t *testing.T) {
	draw := func() string {
		var b bytes.Buffer
		if code := run(t.Context(), []string{"graph", "../../examples/quickstart", "-o", "mermaid", "--ids"}, streams{out: &b, err: io.Discard}); code != exitOK {
			t.Fatalf("exit code %d", code)
		}
		return b.String()
	}
	first := draw()
	if second := draw(); first != second || strings.Count(first, "-->") != 6 {
		t.Errorf("drawn first:\n%s\nand then:\n%s", first, second)
	}
}
