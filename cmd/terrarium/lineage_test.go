package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// A session of a test is written as "name cut < parent parent", where a cut is
// merge, split, both, fork or none. A session without children is live.
func sessionsOf(t testing.TB, lines ...string) []journal.SessionInfo {
	t.Helper()
	var list []journal.SessionInfo
	inherited := map[journal.SessionID]bool{}
	for n, line := range lines {
		head, parents, _ := strings.Cut(line, "<")
		words := strings.Fields(head)
		at := time.Date(2026, 5, 1, 12, n, 0, 0, time.UTC).UnixNano()
		i := journal.SessionInfo{
			Session: journal.SessionID(words[0]), Graph: journal.GraphID("g-" + words[0]),
			Created: at, Events: int64(1000 * n), Bytes: int64(n+1) << 16,
		}
		cut := strings.Join(words[1:], " ")
		if strings.Contains(cut, "merge") {
			i.MergedAt = at
		}
		if strings.Contains(cut, "split") {
			i.SplitAt = at
		}
		if cut == "fork" {
			i.MadeBy = journal.CutFork
		}
		for _, p := range strings.Fields(parents) {
			i.Parents = append(i.Parents, journal.SessionID(p))
			inherited[journal.SessionID(p)] = true
		}
		list = append(list, i)
	}
	for n := range list {
		list[n].Live = !inherited[list[n].Session]
	}
	return list
}

// TestLineageDrawings compares the three drawings of some families.
func TestLineageDrawings(t *testing.T) {
	deep := []string{"s0"}
	for n := 1; n <= 2*deepest+5; n++ {
		deep = append(deep, fmt.Sprintf("s%d split < s%d", n, n-1))
	}
	for name, lines := range map[string][]string{
		"alone":   {"only"},
		"merge":   {"left", "right", "both merge < left right"},
		"diamond": {"one", "two", "whole merge < one two", "near split < whole", "far split < whole", "again merge < near far"},
		"several": {"root", "a split < root", "b split < root", "other"},
		"strange": {"copy fork < original-elsewhere", "kept merge < copy volatile volatile", "moved merge split < kept", "changed < moved"},
		"deep":    deep,
	} {
		t.Run(name, func(t *testing.T) {
			list := sessionsOf(t, lines...)
			f := newFamily(list, liveSessions(list))
			golden(t, filepath.Join("testdata", "lineage", name+".txt"), []byte(f.text()))
			if name != "deep" {
				golden(t, filepath.Join("testdata", "lineage", name+".dot"), []byte(f.dot()))
				golden(t, filepath.Join("testdata", "lineage", name+".mmd"), []byte(f.mermaid()))
			}
		})
	}
}

// For any lineage, a drawing has every session once in full and every parent of each session,
// and nothing else.
func TestLineageIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var lines []string
		links := 0
		for n := range rapid.IntRange(1, 60).Draw(rt, "sessions") {
			line := fmt.Sprintf("s%d. merge <", n)
			for _, p := range rapid.SliceOfNDistinct(rapid.IntRange(0, max(n-1, 0)), 0, min(n, 3), rapid.ID).Draw(rt, "parents") {
				line += fmt.Sprintf(" s%d.", p)
				links++
			}
			lines = append(lines, line)
		}
		list := sessionsOf(t, lines...)
		f := newFamily(list, liveSessions(list))
		text, dot, mermaid := f.text(), f.dot(), f.mermaid()
		for _, i := range list {
			if n := strings.Count(text, "g-"+string(i.Session)); n != 1 {
				rt.Fatalf("%s is drawn %d times in full:\n%s", i.Session, n, text)
			}
		}
		if n := strings.Count(text, "├─ ") + strings.Count(text, "└─ "); n != links {
			rt.Fatalf("%d branches for %d links:\n%s", n, links, text)
		}
		for _, i := range list {
			for _, p := range i.Parents {
				parent, child := f.index[p], f.index[i.Session]
				if !strings.Contains(dot, fmt.Sprintf("  s%d -> s%d ", parent, child)) || !strings.Contains(mermaid, fmt.Sprintf("  s%d -- merge --> s%d\n", parent, child)) {
					rt.Fatalf("%s does not lead to %s:\n%s\n%s", p, i.Session, dot, mermaid)
				}
			}
		}
		if strings.Count(dot, " -> ") != links || strings.Count(mermaid, " --> ") != links {
			rt.Fatalf("there are %d links:\n%s\n%s", links, dot, mermaid)
		}
	})
}

// Only ancestors are drawn, and each format quotes the names in it.
func TestLineageOfOne(t *testing.T) {
	list := sessionsOf(t, "a", "b", "c merge < a", "d merge < b")
	list[3].Session = `d"\<&>`
	f := newFamily(list, list[2:3])
	if names := []journal.SessionID{f.members[0].Session, f.members[1].Session}; len(f.members) != 2 || !slices.Equal(names, []journal.SessionID{"c", "a"}) {
		t.Errorf("the family of c is %v", f.members)
	}
	odd := newFamily(list, list[3:])
	if dot := odd.dot(); !strings.Contains(dot, `"d\"\\<&>\nlive`) {
		t.Errorf("Graphviz gets %s", dot)
	}
	if mermaid := odd.mermaid(); !strings.Contains(mermaid, `"d#quot;\#lt;#amp;#gt;<br>live`) {
		t.Errorf("Mermaid gets %s", mermaid)
	}
}
