package operations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// pasts is the model against which Successor is checked: it moves every id at every
// merge.
type pasts struct {
	sessions   []journal.SessionInfo
	successors map[terrarium.GraphID]int // of every graph there ever was: its session
	live       map[terrarium.GraphID]int
}

func (p *pasts) add(g terrarium.GraphID, parents ...int) {
	info := journal.SessionInfo{Graph: g, Session: terrarium.SessionID(fmt.Sprintf("s%d", len(p.sessions))), Live: true}
	for _, at := range parents {
		info.Parents = append(info.Parents, p.sessions[at].Session)
		p.sessions[at].Live = false
	}
	p.live[g], p.successors[g] = len(p.sessions), len(p.sessions)
	p.sessions = append(p.sessions, info)
}

func (p *pasts) merge(survivor, absorbed terrarium.GraphID) {
	from := p.live[absorbed]
	parents := []int{p.live[survivor], from}
	moved := []terrarium.GraphID{}
	for g, at := range p.successors {
		if slices.Contains(parents, at) {
			moved = append(moved, g)
		}
	}
	delete(p.live, absorbed)
	p.add(survivor, parents...)
	for _, g := range moved {
		p.successors[g] = p.live[survivor]
	}
}

func (p *pasts) split(g, fresh terrarium.GraphID) {
	parent := p.live[g]
	p.add(g, parent)
	for old, at := range p.successors {
		if at == parent {
			p.successors[old] = p.live[g]
		}
	}
	p.add(fresh, parent)
}

// end retires a graph: its session has no children and is not live.
func (p *pasts) end(g terrarium.GraphID) {
	p.sessions[p.live[g]].Live = false
	delete(p.live, g)
}

// Whatever happens to graphs, Successor finds the session that continues the history of each.
func TestSuccessors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pasts{successors: map[terrarium.GraphID]int{}, live: map[terrarium.GraphID]int{}}
		graphs := 0
		fresh := func() terrarium.GraphID { graphs++; return terrarium.GraphID(fmt.Sprintf("g%d", graphs)) }
		pick := func() terrarium.GraphID { return rapid.SampledFrom(slices.Sorted(maps.Keys(p.live))).Draw(t, "graph") }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch kind := rapid.SampledFrom([]string{"new", "merge", "split", "end"}).Draw(t, "step"); {
			case kind == "new" || len(p.live) == 0:
				p.add(fresh())
			case kind == "merge":
				if a, b := pick(), pick(); a != b {
					p.merge(a, b)
				}
			case kind == "split":
				p.split(pick(), fresh())
			case kind == "end":
				p.end(pick())
			}
		}
		for g, at := range p.successors {
			successor, found := terrarium.Successor(p.sessions, g)
			if !found || successor.Session != p.sessions[at].Session {
				t.Fatalf("the successor of %s is %+v, want %+v", g, successor, p.sessions[at])
			}
		}
		if successor, found := terrarium.Successor(p.sessions, "g0"); found {
			t.Fatalf("a graph that never was has the successor %+v", successor)
		}
	})
}

// An id from before a merge leads to what became of its graph: in the run of the merge,
// in the next one, and after the graph has ended.
func TestGraphIDsFromBeforeAMerge(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, terrarium.Options{Dir: dir})
	add(t, tr, "a", "builtin:relay")
	add(t, tr, "b", "builtin:tally")
	old := string(whole(t, tr, "connect", `{"from":"a","to":"b","channel":"c"}`).OldGraphs[1])
	now := string(graphOf(t, tr, "a").ID)
	answered(t, tr, old, now)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	tr = open(t, terrarium.Options{Dir: dir})
	if _, err := tr.FindGraph(t.Context(), now); abi.CodeOf(err) != abi.NotFound || !strings.Contains(err.Error(), "is saved in session") {
		t.Errorf("a graph that was not brought back is found: %v", err)
	}
	if events := do(t, tr, "history", fmt.Sprintf(`{"graph":%q}`, old))["events"].([]any); len(events) == 0 {
		t.Error("a saved graph has no history")
	}
	if _, _, err := tr.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	answered(t, tr, old, now)
	do(t, tr, "batch", fmt.Sprintf(`{"ops":[
		{"op":"add_channel","graph":%[1]q,"name":"later"},
		{"op":"add_creature","name":"d","module":"builtin:relay","join":%[1]q}]}`, old))
	for _, name := range []string{"a", "b", "d"} {
		do(t, tr, "remove_creature", fmt.Sprintf(`{"creature":%q}`, name))
	}
	goAPI(t, tr, old, now)
	for _, id := range []string{old, now} {
		for _, op := range []string{"status", "dead_letters"} {
			refused(t, tr, op, fmt.Sprintf(`{"graph":%q}`, id), abi.NotFound, "ended, and session")
		}
		events := do(t, tr, "history", fmt.Sprintf(`{"graph":%q,"kinds":["creature_started"]}`, id))["events"].([]any)
		if len(events) != 3 {
			t.Errorf("the history of %s, which has ended, tells of %d creatures that started, want 3", id, len(events))
		}
	}
}

// answered calls every operation that takes a graph with an old id.
func answered(t *testing.T, tr *terrarium.Terrarium, old, now string) {
	t.Helper()
	do(t, tr, "wait_idle", ``)
	if g, err := tr.FindGraph(t.Context(), old); string(g) != now || err != nil {
		t.Errorf("the graph %s is found as %q, %v; want %s", old, g, err, now)
	}
	graphs := do(t, tr, "status", fmt.Sprintf(`{"graph":%q}`, old))["graphs"].([]any)
	if len(graphs) != 1 || graphs[0].(map[string]any)["id"] != now {
		t.Errorf("status of %s: %v, want %s", old, graphs, now)
	}
	for _, op := range []string{"history", "lineage", "verify"} {
		byOld, byNow := lasting(do(t, tr, op, fmt.Sprintf(`{"graph":%q}`, old))), lasting(do(t, tr, op, fmt.Sprintf(`{"graph":%q}`, now)))
		if fmt.Sprint(byOld) != fmt.Sprint(byNow) {
			t.Errorf("%s of %s answers\n%v, want\n%v", op, old, byOld, byNow)
		}
	}
	goAPI(t, tr, old, now)
	do(t, tr, "dead_letters", fmt.Sprintf(`{"graph":%q}`, old))
	if got := serve(t, tr, fmt.Sprintf(`{"op":"subscribe","graphs":[%q]}`, old)); !got[0].OK {
		t.Errorf("subscribe to %s: %v", old, got[0].Error)
	}
}

// lasting removes from an answer which files have the history at the moment, because that
// changes in the background.
func lasting(answer map[string]any) map[string]any {
	delete(answer, "incomplete_from")
	line, _ := answer["lineage"].([]any)
	for _, s := range line {
		for _, field := range []string{"complete", "store_path", "bytes"} {
			delete(s.(map[string]any), field)
		}
	}
	return answer
}

// goAPI calls every method that takes a graph with an old id.
func goAPI(t *testing.T, tr *terrarium.Terrarium, old, now string) {
	t.Helper()
	ask := func(id string) string {
		events, err := tr.History(t.Context(), id, journal.HistoryQuery{})
		if err != nil || len(events) == 0 {
			t.Errorf("the history of %s has %d events, %v", id, len(events), err)
		}
		line, err := tr.Lineage(t.Context(), id)
		if err != nil || len(line) == 0 {
			t.Errorf("the lineage of %s has %d sessions, %v", id, len(line), err)
		}
		for i := range line { // which files there are changes in the background
			line[i].Complete, line[i].Path, line[i].Bytes = false, "", 0
		}
		report, err := tr.Verify(t.Context(), id)
		if err != nil || len(report.Missing) != 0 {
			t.Errorf("%s is verified as %+v, %v", id, report, err)
		}
		report.IncompleteFrom = nil
		return fmt.Sprint(len(events), line, report)
	}
	if byOld, byNow := ask(old), ask(now); byOld != byNow {
		t.Errorf("by the old id there is\n%s, by the new one\n%s", byOld, byNow)
	}
}
