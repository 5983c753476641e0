package main

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// links calls f for every parent of every member, with the number of each drawn
// session. Every graph without a store is a node of its own.
func (f *family) links(each func(parent, child int, stranger string, i *journal.SessionInfo)) {
	strangers := map[journal.SessionID]int{}
	next := len(f.members)
	for at := range f.members {
		i := &f.members[at]
		for _, id := range i.Parents {
			parent, known := f.index[id]
			if known {
				each(parent, at, "", i)
				continue
			}
			if parent, known = strangers[id]; !known || id == volatileParent {
				parent, next = next, next+1
				strangers[id] = parent
			}
			each(parent, at, strangerName(id), i)
		}
	}
}

// label describes a session in lines.
func (f *family) label(i *journal.SessionInfo) string {
	return strings.Join([]string{
		string(i.Session),
		fmt.Sprintf("%s, %s at %s", stateOf(i), madeBy(i), bornAt(i)),
		fmt.Sprintf("%s events, %s, graph %s", eventCount(i), sizeOf(i), i.Graph),
	}, "\n")
}

// dot draws a family in the language of Graphviz, oldest first.
func (f *family) dot() string {
	var nodes, edges strings.Builder
	for at := range f.members {
		style := "solid"
		if f.members[at].Live {
			style = "bold"
		}
		fmt.Fprintf(&nodes, "  s%d [label = %s, style = %s]\n", at, dotString(f.label(&f.members[at])), style)
	}
	drawn := map[int]bool{}
	f.links(func(parent, child int, stranger string, i *journal.SessionInfo) {
		if stranger != "" && !drawn[parent] {
			drawn[parent] = true
			fmt.Fprintf(&nodes, "  s%d [label = %s, style = dashed]\n", parent, dotString(stranger))
		}
		fmt.Fprintf(&edges, "  s%d -> s%d [label = %s]\n", parent, child, dotString(madeBy(i)))
	})
	return "digraph lineage {\n  node [shape = box]\n" + nodes.String() + edges.String() + "}\n"
}

// dotString quotes a text for Graphviz.
func dotString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// mermaid draws a family as a Mermaid flowchart, oldest first.
func (f *family) mermaid() string {
	var nodes, edges strings.Builder
	for at := range f.members {
		fmt.Fprintf(&nodes, "  s%d[%s]", at, mermaidString(f.label(&f.members[at])))
		if f.members[at].Live {
			nodes.WriteString(":::live")
		}
		nodes.WriteString("\n")
	}
	drawn := map[int]bool{}
	f.links(func(parent, child int, stranger string, i *journal.SessionInfo) {
		if stranger != "" && !drawn[parent] {
			drawn[parent] = true
			fmt.Fprintf(&nodes, "  s%d(%s)\n", parent, mermaidString(stranger))
		}
		fmt.Fprintf(&edges, "  s%d -- %s --> s%d\n", parent, madeBy(i), child)
	})
	return "flowchart TD\n" + nodes.String() + edges.String() + "  classDef live stroke-width:3px\n"
}

// mermaidString quotes a text for Mermaid.
func mermaidString(s string) string {
	return `"` + strings.NewReplacer(`&`, "#amp;", `#`, "#35;", "`", "#96;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br>").Replace(s) + `"`
}
