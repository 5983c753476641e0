package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// archive is the content of all sessions of a directory, live and ended.
type archive struct {
	sessions []journal.SessionInfo // oldest first
	events   map[journal.SessionID][]journal.Event
}

// everything is more events than any session of a test has.
const everything = 1 << 20

// readArchive reads all sessions of a directory through its public methods.
func readArchive(ctx context.Context, s journal.Storage) (*archive, error) {
	sessions, err := s.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	a := &archive{sessions: sessions, events: map[journal.SessionID][]journal.Event{}}
	for _, info := range sessions {
		if a.events[info.Session], err = s.History(ctx, info.Session, journal.HistoryQuery{Limit: everything}); err != nil {
			return nil, fmt.Errorf("history of %s: %w", info.Session, err)
		}
	}
	return a, nil
}

// findings lists what is wrong with histories and lineages. Every session must have
// the union of the events of its parents, each event once, and the events that it
// wrote itself, which no other session has written. An event comes after those that it
// refers to.
func (a *archive) findings() []string {
	var out []string
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	ids := map[journal.SessionID]map[journal.EventID]bool{}
	writer := map[journal.EventID]journal.SessionID{}
	for _, info := range a.sessions {
		mine := map[journal.EventID]bool{}
		for _, ev := range a.events[info.Session] {
			if mine[ev.ID] {
				wrong("%s has %s twice", info.Session, ev.ID)
			}
			mine[ev.ID] = true
		}
		ids[info.Session] = mine
		inherited := map[journal.EventID]bool{}
		for _, p := range info.Parents {
			for id := range ids[p] { // a volatile parent has none
				inherited[id] = true
				if !mine[id] {
					wrong("%s lacks %s of its parent %s", info.Session, id, p)
				}
			}
		}
		for id := range mine {
			if inherited[id] {
				continue
			}
			if other, known := writer[id]; known {
				wrong("%s is in %s, which did not get it from its parents, and was written by %s", id, info.Session, other)
			}
			writer[id] = info.Session
		}
	}
	for _, info := range a.sessions {
		out = append(out, a.order(info.Session, ids[info.Session])...)
	}
	return append(out, a.lineageFindings()...)
}

// order checks that a history has every event after the events it refers to, and that
// the numbers of every origin rise.
func (a *archive) order(session journal.SessionID, has map[journal.EventID]bool) (out []string) {
	seen := map[journal.EventID]bool{}
	last := map[journal.Origin]uint64{}
	for _, ev := range a.events[session] {
		if has[ev.Cause] && !seen[ev.Cause] {
			out = append(out, fmt.Sprintf("%s lists %s before its cause %s", session, ev.ID, ev.Cause))
		}
		if ev.ID.Seq <= last[ev.ID.Origin] {
			out = append(out, fmt.Sprintf("%s lists %s behind number %d of its origin", session, ev.ID, last[ev.ID.Origin]))
		}
		last[ev.ID.Origin] = ev.ID.Seq
		seen[ev.ID] = true
	}
	return out
}

// lineageFindings checks the lineage of the sessions.
func (a *archive) lineageFindings() (out []string) {
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	known, children := map[journal.SessionID]journal.SessionInfo{}, map[journal.SessionID]int{}
	for _, info := range a.sessions {
		for _, p := range info.Parents {
			parent, ok := known[p]
			if !ok && p != "volatile" {
				wrong("%s has the parent %s, which is not an elder session", info.Session, p)
			}
			if parent.Live {
				wrong("%s has the parent %s, which is live", info.Session, p)
			}
			children[p]++
		}
		if (info.MergedAt != 0) != (len(info.Parents) > 1) {
			wrong("%s has the parents %v and was merged at %d", info.Session, info.Parents, info.MergedAt)
		}
		if info.SplitAt != 0 && len(info.Parents) == 0 {
			wrong("%s has no parents and was split at %d", info.Session, info.SplitAt)
		}
		known[info.Session] = info
	}
	for _, info := range a.sessions {
		for _, p := range info.Parents {
			if p != "volatile" && children[p] > 1 && info.SplitAt == 0 {
				wrong("%s is one of %d children of %s, but was not split", info.Session, children[p], p)
			}
		}
	}
	return out
}

// writers returns, for each event, the sessions that have it but did not get it from a
// parent.
func (a *archive) writers(pick func(*journal.Event) bool) map[journal.EventID][]journal.SessionID {
	out := map[journal.EventID][]journal.SessionID{}
	for _, info := range a.sessions {
		inherited := map[journal.EventID]bool{}
		for _, p := range info.Parents {
			for _, ev := range a.events[p] {
				inherited[ev.ID] = true
			}
		}
		for i := range a.events[info.Session] {
			if ev := &a.events[info.Session][i]; !inherited[ev.ID] && pick(ev) {
				out[ev.ID] = append(out[ev.ID], info.Session)
			}
		}
	}
	return out
}

// partition divides creatures by the channels that they share: a breadth-first search
// over listeners and senders, and nothing else.
func partition(creatures []journal.CreatureID, channels map[journal.ChannelID][]journal.CreatureID) [][]journal.CreatureID {
	shares := map[journal.CreatureID][]journal.ChannelID{}
	for ch, members := range channels {
		for _, c := range members {
			shares[c] = append(shares[c], ch)
		}
	}
	var parts [][]journal.CreatureID
	found := map[journal.CreatureID]bool{}
	for _, c := range creatures {
		if found[c] {
			continue
		}
		found[c] = true
		part := []journal.CreatureID{c}
		for i := 0; i < len(part); i++ {
			for _, ch := range shares[part[i]] {
				for _, other := range channels[ch] {
					if !found[other] {
						found[other] = true
						part = append(part, other)
					}
				}
			}
		}
		slices.Sort(part)
		parts = append(parts, part)
	}
	sortParts(parts)
	return parts
}

func sortParts(parts [][]journal.CreatureID) {
	slices.SortFunc(parts, func(a, b []journal.CreatureID) int { return slices.Compare(a, b) })
}

// partitionFindings compares the graphs that an engine reports with the partition
// given by its edges.
func partitionFindings(status []inspect.GraphStatus) (out []string) {
	var creatures []journal.CreatureID
	var graphs [][]journal.CreatureID
	channels, home := map[journal.ChannelID][]journal.CreatureID{}, map[journal.ChannelID]journal.GraphID{}
	for _, g := range status {
		var members []journal.CreatureID
		for _, ch := range g.Channels {
			home[ch.ID] = g.ID
		}
		for _, c := range g.Creatures {
			members = append(members, c.ID)
			for _, ch := range slices.Concat(c.Listen, c.Send) {
				if !slices.Contains(channels[ch], c.ID) {
					channels[ch] = append(channels[ch], c.ID)
				}
			}
		}
		slices.Sort(members)
		creatures, graphs = append(creatures, members...), append(graphs, members)
	}
	sortParts(graphs)
	if want := partition(creatures, channels); fmt.Sprint(graphs) != fmt.Sprint(want) {
		out = append(out, fmt.Sprintf("the graphs are %v, the edges make %v", graphs, want))
	}
	for _, g := range status {
		for _, c := range g.Creatures {
			for _, ch := range slices.Concat(c.Listen, c.Send) {
				if home[ch] != g.ID {
					out = append(out, fmt.Sprintf("%s of %s has an edge to %s, which is in %q", c.ID, g.ID, ch, home[ch]))
				}
			}
		}
	}
	return out
}

// savedFindings compares the live stores of a directory with the partition given by
// their edges, and checks that no creature is in two.
func savedFindings(graphs []journal.SavedGraph) (out []string) {
	owner := map[string]journal.SessionID{}
	own := func(id string, s journal.SessionID) {
		if other, known := owner[id]; known {
			out = append(out, fmt.Sprintf("%s is in %s and in %s", id, other, s))
		}
		owner[id] = s
	}
	for i := range graphs {
		g := &graphs[i]
		channels := map[journal.ChannelID][]journal.CreatureID{}
		var creatures []journal.CreatureID
		for _, c := range g.Creatures {
			own(string(c.ID), g.Session)
			creatures = append(creatures, c.ID)
		}
		for _, ch := range g.Channels {
			own(string(ch.ID), g.Session)
		}
		for _, e := range g.Edges {
			if !slices.Contains(channels[e.Channel], e.Creature) {
				channels[e.Channel] = append(channels[e.Channel], e.Creature)
			}
		}
		if parts := partition(creatures, channels); len(parts) > 1 {
			out = append(out, fmt.Sprintf("the edges in %s make %d graphs: %v", g.Session, len(parts), parts))
		}
		for _, ch := range slices.Sorted(maps.Keys(channels)) {
			if owner[string(ch)] != g.Session {
				out = append(out, fmt.Sprintf("%s has edges to %s, which it does not have", g.Session, ch))
			}
		}
	}
	return out
}
