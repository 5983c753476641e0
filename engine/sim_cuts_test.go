package engine_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// cuts is what a simulation knows about graphs and their sessions.
type cuts struct {
	storage journal.Storage // of this process
	changed bool            // the partition must be checked
	// lines are the parents that sessions have reported, and ends the histories of ended
	// sessions: neither ever changes.
	lines map[journal.SessionID]string
	ends  map[journal.SessionID][]journal.EventID
}

func newCuts() cuts {
	return cuts{lines: map[journal.SessionID]string{}, ends: map[journal.SessionID][]journal.EventID{}}
}

// checkPartition checks that graphs match the edges of their environments, if there was a
// change since the last check.
func (s *simulation) checkPartition() {
	if !s.changed {
		return
	}
	s.changed = false
	var creatures []journal.CreatureID
	var graphs [][]journal.CreatureID
	channels, home := map[journal.ChannelID][]journal.CreatureID{}, map[journal.ChannelID]journal.GraphID{}
	for _, g := range s.e.Shapes() {
		for _, ch := range g.Channels {
			home[ch] = g.ID
		}
		for _, e := range g.Edges {
			channels[e.Channel] = append(channels[e.Channel], e.Creature)
			if home[e.Channel] != g.ID {
				s.failf("%s of %s has an edge to %s, which is in %q", e.Creature, g.ID, e.Channel, home[e.Channel])
			}
		}
		if len(g.Creatures) == 0 {
			s.failf("%s has no creature", g.ID)
		}
		creatures = append(creatures, g.Creatures...)
		slices.Sort(g.Creatures)
		graphs = append(graphs, g.Creatures)
	}
	sortParts(graphs)
	if want := partition(creatures, channels); !reflect.DeepEqual(graphs, want) && len(want)+len(graphs) > 0 {
		s.failf("the graphs are %v, the edges make %v", graphs, want)
	}
}

// checkSaved checks, before anything is restored, that the live stores have every member once,
// in the partition that their edges make.
func (s *simulation) checkSaved() {
	saved, problems, err := s.storage.Saved(s.ctx)
	if err != nil || len(problems) > 0 {
		s.failf("Saved: %v, problems %v", err, problems)
	}
	if findings := savedFindings(saved); len(findings) > 0 {
		s.failf("in the stores: %q", findings)
	}
}

// situation is the state before a change.
type situation struct {
	lives    map[journal.CreatureID]engine.Life
	homes    map[string]engine.Shape // by member
	sessions map[journal.SessionID]bool
	wires    map[journal.WireID]journal.OutputWire
}

func (s *simulation) situation() situation {
	return situation{s.e.Lives(), homes(s.e.Shapes()), s.disk.Sessions(), s.wiresNow()}
}

// homes returns the graphs of creatures and channels.
func homes(shapes []engine.Shape) map[string]engine.Shape {
	out := map[string]engine.Shape{}
	for _, g := range shapes {
		for _, c := range g.Creatures {
			out[string(c)] = g
		}
		for _, ch := range g.Channels {
			out[string(ch)] = g
		}
	}
	return out
}

// checkLives checks that the creatures that a change keeps have lost nothing: no
// instance, no timer, no request, no delivery being handled, no alias of an edge that
// they have kept.
func (s *simulation) checkLives(what string, before situation) {
	_, channels, _ := s.e.Members()
	for id, now := range s.e.Lives() {
		was, there := before.lives[id]
		if !there {
			continue
		}
		if before.homes[string(id)].Session == "" {
			now.Timers, now.Asks = was.Timers, was.Asks // requests get other ids when they enter a log
		}
		// A delivery to be tried again is a dead letter if its channel was removed.
		ch := was.Again.Channel
		again := now.Again != was.Again && (slices.Contains(channels, ch) || ch == journal.InboxOf(id))
		if now.Instances != was.Instances || now.Hand != was.Hand || now.Timers != was.Timers || !s.asksOn(was.Asks, now.Asks, before) || again {
			s.failf("%s: %s was %+v and is %+v", what, id, was, now)
		}
		for edge, alias := range now.Aliases {
			if old, kept := was.Aliases[edge]; kept && old != alias && !s.recipeNames(id, edge, alias) && !s.recipeTakes(now.Aliases, edge, old) {
				s.failf("%s: %s called its edge %v %q, and now calls it %q", what, id, edge, old, alias)
			}
		}
	}
}

// recipeNames reports whether an edge has got its alias from the recipe being applied:
// the edge was added by hand, and now the recipe declares it too.
func (s *simulation) recipeNames(id journal.CreatureID, edge engine.Bond, alias string) bool {
	if s.applying == nil {
		return false
	}
	member, address := false, ""
	for _, g := range s.statusNow() {
		for _, c := range g.Creatures {
			member = member || c.ID == id && c.Deployment == s.applying.Name
		}
		for _, ch := range g.Channels {
			if ch.ID == edge.Channel {
				address = ch.Address
			}
		}
	}
	return member && slices.ContainsFunc(s.applying.Channels, func(ch deploy.ChannelSpec) bool { return ch.Address == address && ch.Name == alias })
}

// recipeTakes reports whether the recipe being applied has given the alias of a
// creature's edge to another edge of it: the recipe's own names take precedence over
// those of edges that were added by hand.
func (s *simulation) recipeTakes(aliases map[engine.Bond]string, edge engine.Bond, alias string) bool {
	if s.applying == nil {
		return false
	}
	for other, now := range aliases {
		if other != edge && other.Direction == edge.Direction && now == alias {
			return true
		}
	}
	return false
}

// checkParentage checks that the sessions that a change has made have the
// parents that their members come from.
func (s *simulation) checkParentage(what string, before situation) {
	if len(s.disk.Sessions()) == len(before.sessions) {
		return
	}
	shapes := s.e.Shapes()
	after := homes(shapes)
	infos, err := s.storage.Sessions(s.ctx)
	if err != nil {
		s.failf("Sessions: %v", err)
	}
	for _, g := range shapes {
		i := slices.IndexFunc(infos, func(i journal.SessionInfo) bool { return i.Session == g.Session })
		if _, old := before.sessions[g.Session]; old || i < 0 {
			continue
		}
		want, volatile := map[journal.SessionID]bool{}, map[journal.GraphID]bool{}
		for m, now := range after {
			switch was, there := before.homes[m]; {
			case now.ID != g.ID || !there:
			case was.Session == "":
				volatile[was.ID] = true
			default:
				want[was.Session] = true
			}
		}
		s.compareParents(what, infos[i], want, len(volatile), before, after)
	}
}

// asksOn reports whether a creature still has its requests: those to a creature that is
// removed are answered, and no others.
func (s *simulation) asksOn(was, now []journal.RequestRow, before situation) bool {
	answered := len(was) - len(now)
	if answered == 0 {
		return slices.Equal(was, now)
	}
	lives := s.e.Lives()
	removed := slices.ContainsFunc(slices.Collect(maps.Keys(before.lives)), func(id journal.CreatureID) bool {
		_, stays := lives[id]
		return !stays
	})
	return removed && !slices.ContainsFunc(now, func(r journal.RequestRow) bool { return !slices.Contains(was, r) })
}

// compareParents compares the parents of a session with the expected ones. It may have
// others whose members no longer exist.
func (s *simulation) compareParents(what string, info journal.SessionInfo, want map[journal.SessionID]bool, volatile int, before situation, after map[string]engine.Shape) {
	for _, p := range info.Parents {
		if _, old := before.sessions[p]; !old { // none, or made during the change
			volatile--
			continue
		}
		for m, was := range before.homes {
			if _, left := after[m]; was.Session == p && left && !want[p] {
				s.failf("%s: %s has the parent %s, from which no member has come", what, info.Session, p)
			}
		}
		delete(want, p)
	}
	if len(want) > 0 || volatile > 0 {
		s.failf("%s: %s lacks the parents %v, and %d parents without a store", what, info.Session, slices.Sorted(maps.Keys(want)), volatile)
	}
}

// checkArchive checks the histories and lineages of all sessions, and that their immutable
// parts have not changed. It takes as long as everything else, so only some programs do it.
func (s *simulation) checkArchive() {
	if s.seed%4 != 0 {
		return
	}
	defer s.calm()()
	a, err := readArchive(s.ctx, s.storage)
	if err != nil {
		s.failf("%v", err)
	}
	if findings := a.findings(); len(findings) > 0 {
		s.failf("sessions: %q", findings)
	}
	s.checkSuccessors(a.sessions)
	for _, info := range a.sessions {
		line := fmt.Sprint(info.Graph, info.Parents, info.MergedAt, info.SplitAt, info.Created)
		if was, known := s.lines[info.Session]; known && was != line {
			s.failf("the lineage of %s was %s and is %s", info.Session, was, line)
		}
		s.lines[info.Session] = line
		if info.Live {
			continue
		}
		ids := a.ids(info.Session)
		if was, known := s.ends[info.Session]; known && !slices.Equal(was, ids) {
			s.failf("%s has ended with %d events, and now has %d, or others", info.Session, len(was), len(ids))
		}
		s.ends[info.Session] = ids
	}
}

// checkSuccessors checks that the engine's successors of graphs match the lineage of
// their stores. Successors of graphs without a store are known only to the engine.
func (s *simulation) checkSuccessors(sessions []journal.SessionInfo) {
	want, got := journal.NewSuccession(sessions), s.e.Successors()
	maps.DeleteFunc(got, func(old, _ journal.GraphID) bool {
		return !slices.ContainsFunc(sessions, func(i journal.SessionInfo) bool { return i.Graph == old })
	})
	if !maps.Equal(want, got) {
		s.failf("the successors of graphs are %v, but according to their stores %v", got, want)
	}
}

func (a *archive) ids(session journal.SessionID) (out []journal.EventID) {
	for i := range a.events[session] {
		out = append(out, a.events[session][i].ID)
	}
	return out
}

// copyHistory copies some of the history that children of cuts do not have yet.
func (s *simulation) copyHistory(st step) {
	for range 1 + st.b%3 {
		s.disk.Copy(st.a, 1+st.b%60, st.c%2 == 0)
	}
	if st.c%3 == 0 {
		s.disk.Sweep()
	}
}

// completeSome copies all history, or leaves it for after the restart.
func (s *simulation) completeSome() {
	if s.seed%8 == 0 {
		s.completeAll()
	}
}

// completeAll copies all history, and compares what can be read before and after.
func (s *simulation) completeAll() {
	defer s.calm()()
	before, err := readArchive(s.ctx, s.storage)
	if err != nil {
		s.failf("%v", err)
	}
	for i := 0; s.disk.Incomplete() > 0; i++ {
		s.disk.Copy(i, 50, true)
	}
	s.disk.Sweep()
	after, err := readArchive(s.ctx, s.storage)
	if err != nil {
		s.failf("%v", err)
	}
	for _, info := range before.sessions {
		if was, is := before.ids(info.Session), after.ids(info.Session); !slices.Equal(was, is) {
			s.failf("%s had %d events before everything was copied, and has %d now", info.Session, len(was), len(is))
		}
	}
}
