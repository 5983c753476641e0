package engine_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The checks of archive_test.go find the faults they are meant to find.
func TestFindingsOfAnArchive(t *testing.T) {
	event := func(origin byte, seq uint64) journal.Event {
		return journal.Event{ID: journal.EventID{Origin: journal.Origin{origin}, Seq: seq}}
	}
	sound := func() *archive {
		return &archive{
			sessions: []journal.SessionInfo{
				{Session: "a"}, {Session: "b"},
				{Session: "m", Parents: []journal.SessionID{"a", "b"}, MergedAt: 1, Live: true},
			},
			events: map[journal.SessionID][]journal.Event{
				"a": {event(1, 1), event(1, 2)}, "b": {event(2, 1)},
				"m": {event(1, 1), event(2, 1), event(1, 2), event(3, 1)},
			},
		}
	}
	for _, c := range []struct {
		name, want string
		spoil      func(a *archive)
	}{
		{"sound", "", func(*archive) {}},
		{"twice", "twice", func(a *archive) { a.events["m"] = append(a.events["m"], event(1, 1)) }},
		{"lost", "lacks", func(a *archive) { a.events["m"] = a.events["m"][1:] }},
		{"from elsewhere", "did not get it from its parents", func(a *archive) { a.events["b"] = append(a.events["b"], event(1, 1)) }},
		{"order", "behind number", func(a *archive) { m := a.events["m"]; m[0], m[2] = m[2], m[0] }},
		{"cause", "before its cause", func(a *archive) { a.events["m"][0].Cause = event(3, 1).ID }},
		{"live parent", "is live", func(a *archive) { a.sessions[0].Live = true }},
		{"no elder", "not an elder", func(a *archive) { a.sessions[2].Parents = append(a.sessions[2].Parents, "x") }},
		{"merged", "was merged at 0", func(a *archive) { a.sessions[2].MergedAt = 0 }},
		{"split", "was not split", func(a *archive) {
			a.sessions = append(a.sessions, journal.SessionInfo{Session: "c", Parents: []journal.SessionID{"b"}})
			a.events["c"] = a.events["b"]
		}},
		{"split without parents", "no parents", func(a *archive) { a.sessions[0].SplitAt = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := sound()
			c.spoil(a)
			wantFinding(t, a.findings(), c.want)
		})
	}
}

func wantFinding(t *testing.T, findings []string, want string) {
	t.Helper()
	if all := strings.Join(findings, "; "); want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("found %q, want %q", findings, want)
	}
}

func TestFindingsOfAPartition(t *testing.T) {
	creature := func(id journal.CreatureID, listen ...journal.ChannelID) inspect.CreatureStatus {
		return inspect.CreatureStatus{ID: id, Listen: listen}
	}
	one := inspect.GraphStatus{ID: "g", Creatures: []inspect.CreatureStatus{creature("a", "x"), creature("b", "x", "y")}, Channels: []inspect.ChannelStatus{{ID: "x"}, {ID: "y"}}}
	other := inspect.GraphStatus{ID: "h", Creatures: []inspect.CreatureStatus{creature("c", "y")}}
	apart := inspect.GraphStatus{ID: "i", Creatures: []inspect.CreatureStatus{creature("d"), creature("e")}}
	wantFinding(t, partitionFindings([]inspect.GraphStatus{one}), "")
	wantFinding(t, partitionFindings([]inspect.GraphStatus{one, other}), "the edges make")
	wantFinding(t, partitionFindings([]inspect.GraphStatus{one, other}), "has an edge to y")
	wantFinding(t, partitionFindings([]inspect.GraphStatus{apart}), "the edges make")
}

func TestFindingsOfWhatIsSaved(t *testing.T) {
	a, b := journal.CreatureRow{ID: "a"}, journal.CreatureRow{ID: "b"}
	x := journal.ChannelRow{ID: "x"}
	edges := []journal.EdgeRow{{Creature: "a", Channel: "x"}, {Creature: "b", Channel: "x"}}
	graph := func(s journal.SessionID, edges []journal.EdgeRow, creatures ...journal.CreatureRow) journal.SavedGraph {
		return journal.SavedGraph{Session: s, Creatures: creatures, Channels: []journal.ChannelRow{x}, Edges: edges}
	}
	wantFinding(t, savedFindings([]journal.SavedGraph{graph("s", edges, a, b)}), "")
	wantFinding(t, savedFindings([]journal.SavedGraph{graph("s", edges[:1], a, b)}), "make 2 graphs")
	wantFinding(t, savedFindings([]journal.SavedGraph{graph("s", edges[:1], a), {Session: "t", Creatures: []journal.CreatureRow{a}}}), "a is in s and in t")
	wantFinding(t, savedFindings([]journal.SavedGraph{{Session: "s", Creatures: []journal.CreatureRow{a}, Edges: edges[:1]}}), "which it does not have")
}
