package main

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/seed47132306/terrarium/engine/journal"
)

// deepest is the depth at which a branch becomes a tree of its own. Otherwise a
// session that has merged and split a thousand times would be drawn a thousand levels
// deep.
const deepest = 20

// text draws a family as trees: a session, and below it the sessions from which it
// came. A session that is an ancestor twice is drawn once; other branches refer to it.
func (f *family) text() string {
	t := &treeDrawing{family: f, shown: map[journal.SessionID]bool{}, table: newTable()}
	t.table.AppendHeader(table.Row{"session", "state", "made by", "at", "events", "size", "graph"})
	t.table.SetColumnConfigs([]table.ColumnConfig{{Name: "events", Align: text.AlignRight}, {Name: "size", Align: text.AlignRight}})
	for trees := f.heads; len(trees) > 0; {
		for _, id := range trees {
			if !t.shown[id] {
				t.draw(id, "", "", 0)
			}
		}
		trees, t.later = t.later, nil
	}
	return trimLines(t.table.Render())
}

// treeDrawing is the state of one drawing.
type treeDrawing struct {
	*family
	table table.Writer
	shown map[journal.SessionID]bool
	later []journal.SessionID // trees still to draw
}

// draw draws a session and its ancestors. branch is the prefix of its own line, and
// indent that of the lines below.
func (t *treeDrawing) draw(id journal.SessionID, branch, indent string, depth int) {
	i := t.member(id)
	switch {
	case i == nil:
		t.table.AppendRow(table.Row{branch + printable(strangerName(id))})
		return
	case t.shown[id]:
		t.table.AppendRow(table.Row{branch + string(id), "above"})
		return
	case depth > deepest:
		t.table.AppendRow(table.Row{branch + string(id), "below"})
		t.later = append(t.later, id)
		return
	}
	t.shown[id] = true
	t.table.AppendRow(table.Row{branch + string(id), stateOf(i), madeBy(i), bornAt(i), eventCount(i), sizeOf(i), i.Graph})
	for n, parent := range i.Parents {
		if n < len(i.Parents)-1 {
			t.draw(parent, indent+"├─ ", indent+"│  ", depth+1)
		} else {
			t.draw(parent, indent+"└─ ", indent+"   ", depth+1)
		}
	}
}

// trimLines removes the spaces at the ends of a table's lines.
func trimLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
