package outlook

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// markdown writes the document as text. Every name is put into a code span,
// where Markdown has no meaning, so that a name cannot pass for a part of the
// document.
func (a *Awareness) markdown() []byte {
	p := &page{}
	p.self(a)
	p.channels(&a.Channels)
	p.wires(&a.Wires)
	if len(a.Tools) > 0 {
		p.line("\n## Group tools\n")
		for _, tool := range a.Tools {
			p.line("- %s", code(tool))
		}
	}
	p.graph(&a.Graph)
	return p.Bytes()
}

// page is a Markdown document being written.
type page struct{ bytes.Buffer }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) self(a *Awareness) {
	s := &a.Self
	p.line("# %s\n", code(s.Name))
	p.line("- revision: %d", a.Revision)
	p.line("- id: %s", code(string(s.ID)))
	p.line("- graph: %s", code(string(a.Graph.ID)))
	for _, row := range [][2]string{{"deployment", s.Deployment}, {"address", s.Address}, {"species", s.Species}} {
		if row[1] != "" {
			p.line("- %s: %s", row[0], code(row[1]))
		}
	}
	if s.Description != "" {
		p.line("- description: %s", code(s.Description))
	}
	p.line("- rank: %s", rank(s.Privileged, s.Root))
	if s.Parent != nil {
		p.line("- parent: %s", s.Parent)
	}
	p.line("- state: %s", s.State)
}

func rank(privileged, root bool) string {
	switch {
	case root && privileged:
		return "privileged, root"
	case root:
		return "root"
	case privileged:
		return "privileged"
	}
	return "worker"
}

func (p *page) channels(list *AwareList[AwareChannel]) {
	p.line("\n## Channels\n")
	for i := range list.Items {
		ch := &list.Items[i]
		p.line("- %s (%s)%s", code(ch.Name), code(string(ch.ID)), described(ch.Report, ch.Description))
		if ch.Listen != "" {
			p.line("  - listening as %s; others: %s", code(ch.Listen), peers(&ch.Listeners))
		} else {
			p.line("  - listeners: %s", peers(&ch.Listeners))
		}
		if ch.Send != "" {
			p.line("  - sending as %s; others: %s", code(ch.Send), peers(&ch.Senders))
		} else {
			p.line("  - senders: %s", peers(&ch.Senders))
		}
	}
	rest(p, list)
}

func (p *page) wires(w *AwareWires) {
	if w.In.Total+w.Out.Total == 0 {
		return
	}
	p.line("\n## Output wires\n")
	for _, list := range []*AwareList[AwareWire]{&w.In, &w.Out} {
		for _, wire := range list.Items {
			p.line("- %s: from %s to %s", code(wire.ID), wire.Source, wire.Target)
		}
		if len(list.Items) > 0 {
			rest(p, list)
		}
	}
}

func (p *page) graph(g *AwareGraph) {
	if g.Members == nil {
		return
	}
	p.line("\n## Members of the graph\n")
	for i := range g.Members.Items {
		p.member(&g.Members.Items[i])
	}
	rest(p, g.Members)
	p.line("\n## Channels of the graph\n")
	for i := range g.Channels.Items {
		ch := &g.Channels.Items[i]
		p.line("- %s (%s): %d listening, %d sending%s", code(ch.Name), code(string(ch.ID)), ch.Listeners, ch.Senders, described(ch.Report, ch.Description))
	}
	rest(p, g.Channels)
	if g.Spawnable.Total > 0 {
		p.line("\n## What can be spawned\n")
		for _, s := range g.Spawnable.Items {
			p.line("- %s: %d at most%s", code(s.Species), s.Limit, described(false, s.Description))
		}
		rest(p, g.Spawnable)
	}
}

func (p *page) member(m *AwareMember) {
	fmt.Fprintf(p, "- %s (%s): %s, %s", code(m.Name), code(string(m.ID)), rank(m.Privileged, m.Root), m.State)
	for _, row := range [][2]string{{"deployment", m.Deployment}, {"address", m.Address}, {"species", m.Species}, {"parent", string(m.Parent)}} {
		if row[1] != "" {
			fmt.Fprintf(p, ", %s %s", row[0], code(row[1]))
		}
	}
	p.line("%s", described(false, m.Description))
}

// rest ends a list: it says how many items are left out, or that the list is
// empty.
func rest[T any](p *page, list *AwareList[T]) {
	switch {
	case list.Total == 0:
		p.line("none")
	case list.Truncated > 0:
		p.line("- truncated: %d", list.Truncated)
	}
}

// peers writes a list of creatures into a line.
func peers(list *AwareList[AwarePeer]) string {
	var out []string
	for _, p := range list.Items {
		out = append(out, p.String())
	}
	switch more := list.Total - len(list.Items); {
	case list.Total == 0:
		return "none"
	case more == 0:
	case len(out) == 0:
		return fmt.Sprint(more)
	default:
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// String writes the peer in Markdown.
func (p AwarePeer) String() string {
	if p.Name == "" {
		return code(string(p.ID))
	}
	return code(p.Name) + " (" + code(string(p.ID)) + ")"
}

// described returns the text after a channel in a list.
func described(report bool, description string) string {
	out := ""
	if report {
		out = ", the way to the root"
	}
	if description != "" {
		out += ": " + code(description)
	}
	return out
}

// code writes text as a code span. The fence is longer than any run of
// backticks in the text, and line ends become spaces.
func code(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	pad := ""
	if longest > 0 || text == "" || strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		pad = " " // CommonMark removes one at each end
	}
	return fence + pad + text + pad + fence
}
