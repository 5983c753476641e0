package sqlitestore

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// These functions write a graph as lines, so that the graphs of an engine, of a store and of
// the model can be compared.

func creatureLine(id journal.CreatureID, name string, stopped bool) string {
	return fmt.Sprintf("creature %s %s stopped=%t", id, name, stopped)
}

func channelLine(id journal.ChannelID, name string) string {
	return fmt.Sprintf("channel %s %s", id, name)
}

func edgeLine(c journal.CreatureID, ch journal.ChannelID, d journal.Direction) string {
	return fmt.Sprintf("edge %s %s %s", c, ch, d)
}

func wireLine(w *journal.OutputWire) string { return fmt.Sprintf("wire %s %s %s", w.ID, w.From, w.To) }

// graphsLine states how many graphs there are. Their members follow from the edges.
func graphsLine(n int) string { return fmt.Sprintf("graphs %d", n) }

func linesOfStatus(graphs []inspect.GraphStatus) []string {
	out := []string{graphsLine(len(graphs))}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			out = append(out, creatureLine(c.ID, c.Name, c.State == "stopped"))
			for _, ch := range c.Listen {
				out = append(out, edgeLine(c.ID, ch, journal.Listen))
			}
			for _, ch := range c.Send {
				out = append(out, edgeLine(c.ID, ch, journal.Send))
			}
		}
		for _, ch := range g.Channels {
			out = append(out, channelLine(ch.ID, ch.Name))
		}
		for _, w := range g.Wires {
			out = append(out, wireLine(&w))
		}
	}
	slices.Sort(out)
	return out
}

// linesOfSaved leaves out graphs without creatures: their stores were made for changes that
// have not happened, and the next start ends them.
func linesOfSaved(graphs []journal.SavedGraph) []string {
	graphs = slices.DeleteFunc(slices.Clone(graphs), func(g journal.SavedGraph) bool { return len(g.Creatures) == 0 })
	out := []string{graphsLine(len(graphs))}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			out = append(out, creatureLine(c.ID, c.Name, c.Stopped))
		}
		for _, e := range g.Edges {
			out = append(out, edgeLine(e.Creature, e.Channel, e.Direction))
		}
		for _, ch := range g.Channels {
			if ch.Inbox == "" {
				out = append(out, channelLine(ch.ID, ch.Name))
			}
		}
		for _, w := range g.Wires {
			out = append(out, wireLine(&w))
		}
	}
	slices.Sort(out)
	return out
}

// unlike returns the lines that only one of two sorted lists has.
func unlike(got, want []string) (out []string) {
	for _, line := range got {
		if _, found := slices.BinarySearch(want, line); !found {
			out = append(out, "surplus: "+line)
		}
	}
	for _, line := range want {
		if _, found := slices.BinarySearch(got, line); !found {
			out = append(out, "missing: "+line)
		}
	}
	return out
}
