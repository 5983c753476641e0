package sqlitestore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// check checks what a life has left, without changing it.
func (b *resumeReports) check(done bool) {
	b.t.Helper()
	v := mustView(b.t, b.dir)
	list, err := v.Catalogue(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	there, letters := map[string]string{}, map[journal.EventID]bool{}
	for _, info := range list {
		wantWhole(b.t, v, info.Session)
		if !info.Live {
			continue
		}
		g, err := v.Saved(b.t.Context(), info.Session)
		if err != nil {
			b.t.Fatal(err)
		}
		b.checkPonds(v, g)
		maps.Copy(there, listensOf(g))
		rows, err := v.DeadLetters(b.t.Context(), info.Session, "", journal.EventID{}, 1<<30)
		if err != nil {
			b.t.Fatal(err)
		}
		for i := range rows {
			if letters[rows[i].ID] {
				b.t.Errorf("the dead letter %s exists twice", rows[i].ID)
			}
			letters[rows[i].ID] = true
		}
	}
	for id := range b.letters {
		if !letters[id] {
			b.t.Errorf("the dead letter %s was lost", id)
		}
	}
	b.letters = letters
	b.checkShape(there, done)
}

// listensOf returns where the creatures of a saved graph listen.
func listensOf(g journal.SavedGraph) map[string]string {
	names, on := map[journal.CreatureID]string{}, map[string][]string{}
	for _, c := range g.Creatures {
		names[c.ID], on[c.Name] = c.Name, nil
	}
	for _, e := range g.Edges {
		on[names[e.Creature]] = append(on[names[e.Creature]], e.Alias)
	}
	out := map[string]string{}
	for name, aliases := range on {
		slices.Sort(aliases)
		out[name] = fmt.Sprint(aliases)
	}
	return out
}

// checkShape checks that each creature is either as it was before the edit or as it is after
// the edit.
func (b *resumeReports) checkShape(there map[string]string, done bool) {
	b.t.Helper()
	was, is := b.was, b.is.listens()
	if b.was = there; done {
		was = is
	}
	for name := range there {
		if there[name] != was[name] && there[name] != is[name] {
			b.t.Errorf("%s listens on %s; before the edit that was %q, and after it %q", name, there[name], was[name], is[name])
		}
	}
	for name := range is {
		if there[name] == "" && was[name] != "" {
			b.t.Errorf("%s does not exist", name)
		}
	}
}

// checkPonds checks the messages in the ponds of a graph, and what its creatures have counted.
func (b *resumeReports) checkPonds(v *View, g journal.SavedGraph) {
	b.t.Helper()
	for _, ch := range g.Channels {
		var pond int
		if _, err := fmt.Sscanf(ch.Name, "pond-%d", &pond); err != nil || ch.Inbox != "" {
			continue
		}
		events, err := v.Messages(b.t.Context(), g.Session, ch.ID, 0, 0, 1<<30, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		for i := range events {
			if want := string(numbered(pond, uint64(i+1))); events[i].Seq != uint64(i+1) || string(events[i].Payload) != want {
				b.t.Fatalf("%s has %q as number %d, want %q", ch.Name, events[i].Payload, events[i].Seq, want)
			}
		}
		if n := uint64(len(events)); n < b.acked[pond] {
			b.t.Errorf("%s has %d messages, but %d were acknowledged", ch.Name, n, b.acked[pond])
		}
	}
	for _, c := range g.Creatures {
		for message, times := range b.heard(v, g, c.ID) {
			if times != "1" {
				b.t.Errorf("%s has heard %s %s times", c.Name, message, times)
			}
		}
	}
}

// heard returns how often a creature has counted each message, by its pond and its number.
func (b *resumeReports) heard(v *View, g journal.SavedGraph, c journal.CreatureID) map[string]string {
	b.t.Helper()
	state, err := v.State(b.t.Context(), g.Session, c)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range state {
		if message, counts := strings.CutPrefix(key, "count/"); counts {
			out[message] = string(value)
		}
	}
	return out
}

// checkHeard checks that the keepers have heard everything, and that the other creatures have
// heard everything since the recipe was applied in the last life.
func (b *resumeReports) checkHeard(since [ponds]uint64) {
	b.t.Helper()
	v := mustView(b.t, b.dir)
	graphs, _, err := v.Live(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			listen, from := b.is[c.Name], since
			var keeper int
			if _, err := fmt.Sscanf(c.Name, "keeper-%d", &keeper); err == nil {
				listen, from = []int{keeper}, [ponds]uint64{}
			}
			heard := b.heard(v, g, c.ID)
			for _, i := range listen {
				for n := from[i] + 1; n <= b.goal; n++ {
					if message := fmt.Sprint(i, n); heard[message] != "1" {
						b.t.Errorf("%s has not heard %s", c.Name, message)
					}
				}
			}
		}
	}
}
