package stopping

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// reread returns a ledger as it is after a store has saved it.
func reread(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	var rec journal.Record
	l.Write(&rec)
	out := &Ledger{}
	for key, value := range rec.Meta {
		if !out.Read(key, value) {
			t.Fatalf("%s was not read", key)
		}
	}
	return out
}

// TestLedgersFollowGraphs splits and merges graphs at random while creatures have turns. The
// graph of a creature counts all of its turns, each once.
func TestLedgersFollowGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	names := []journal.CreatureID{"a", "b", "c", "d"}
	for range 50 {
		graphs, home, turns := []*Ledger{{}}, map[journal.CreatureID]int{}, map[journal.CreatureID]int64{}
		for range 80 {
			c, d := names[r.IntN(4)], names[r.IntN(4)]
			switch r.IntN(5) {
			case 0: // a split
				next := &Ledger{}
				next.Inherit(graphs[home[c]])
				graphs = append(graphs, next)
				home[c] = len(graphs) - 1
			case 1: // a merge
				into, from := home[c], home[d]
				graphs[into].Inherit(graphs[from])
				for _, n := range names {
					if home[n] == from {
						home[n] = into
					}
				}
			default:
				graphs[home[c]].Turn(nil, c, "talk", 2)
				turns[c]++
			}
			l := reread(t, graphs[home[c]])
			var together int64
			for _, n := range names {
				if home[n] != home[c] {
					together += l.creatures[n].Turns // as far as this graph knows
					continue
				}
				if together += turns[n]; l.creatures[n].Turns != turns[n] || l.creatures[n].Messages != 2*turns[n] {
					t.Fatalf("%s has %+v, want %d turns", n, l.creatures[n], turns[n])
				}
			}
			if got := l.Counters("talk", 0); got.Turns != together || got.Messages != 2*together {
				t.Fatalf("the graph has %+v, want %d turns", got, together)
			}
		}
	}
}

// TestConditions proves which conditions hold, and the reasons in words.
func TestConditions(t *testing.T) {
	c := journal.StopCounters{Turns: 5, Messages: 7, Tokens: 90, Money: 1_250_000, Elapsed: int64(2 * time.Minute)}
	for _, tt := range []struct {
		w    deploy.StopWhen
		want string // empty: it does not hold
	}{
		{deploy.StopWhen{Turns: 5}, "turns 5 of 5"},
		{deploy.StopWhen{Turns: 6}, ""},
		{deploy.StopWhen{Turns: 4, Messages: 7}, "turns 5 of 4, messages 7 of 7"},
		{deploy.StopWhen{Turns: 4, Messages: 8}, ""},
		{deploy.StopWhen{Tokens: 90, Money: 1_250_000}, "tokens 90 of 90, money 1.25 of 1.25"},
		{deploy.StopWhen{Money: 1_250_001}, ""},
		{deploy.StopWhen{After: 2 * time.Minute}, "2m0s after it began"},
		{deploy.StopWhen{After: 2*time.Minute + 1}, ""},
		{deploy.StopWhen{Turns: 1, Match: func(c *journal.StopCounters) (bool, error) { return c.Tokens > 90, nil }}, ""},
	} {
		reason, ok := holds(&tt.w, c)
		if ok != (tt.want != "") || reason != tt.want {
			t.Errorf("%+v: %q, %v; want %q", tt.w, reason, ok, tt.want)
		}
	}
}

// TestAStopIsKept proves that a stop stays until the recipe is applied again, even if an amount
// falls, and that a merge keeps it.
func TestAStopIsKept(t *testing.T) {
	rules := []deploy.StopWhen{{Name: "dear", Tokens: 100}}
	var l, other Ledger
	l.Begin(nil, "talk", 7)
	other.Begin(nil, "talk", 3)
	if x := l.Judge(nil, "talk", rules, journal.StopCounters{Tokens: 99}, 8); x != nil || l.Stopped("talk") != nil {
		t.Fatalf("the recipe stops too early: %+v", x)
	}
	if x := l.Judge(nil, "talk", rules, journal.StopCounters{Tokens: 100}, 9); x == nil || !x.Stopped || !strings.Contains(string(x.Event.Payload), "tokens 100 of 100") {
		t.Fatalf("the recipe does not stop: %+v", x)
	}
	if x := l.Judge(nil, "talk", rules, journal.StopCounters{Tokens: 50}, 10); x != nil {
		t.Errorf("a stopped recipe was judged again: %+v", x)
	}
	other.Inherit(reread(t, &l))
	if s := other.Stopped("talk"); s == nil || s.Condition != "stop_when.dear" || other.places["talk"].Began != 3 {
		t.Errorf("after a merge, the ledger has %+v", maps.Clone(other.places))
	}
	if x := other.Revise(nil, "talk", rules, journal.StopCounters{Tokens: 100}, 11); x != nil {
		t.Errorf("while the same condition holds, Revise returns %+v, want nothing", x)
	}
	if x := other.Revise(nil, "talk", rules, journal.StopCounters{Tokens: 50}, 12); x == nil || x.Stopped || other.Stopped("talk") != nil {
		t.Errorf("when no condition holds, Revise returns %+v, want that the recipe continues", x)
	}
}

// TestTheReasonOfAStopFollowsItsBlock applies a recipe whose block has another limit, which is
// reached too. The recipe stays stopped, with the same time, and its reason has the new limit.
func TestTheReasonOfAStopFollowsItsBlock(t *testing.T) {
	block := func(turns int64) []deploy.StopWhen { return []deploy.StopWhen{{Name: "enough", Turns: turns}} }
	var l Ledger
	l.Begin(nil, "talk", 7)
	l.Judge(nil, "talk", block(12), journal.StopCounters{Turns: 12}, 9)
	for _, tt := range []struct {
		limit, turns int64
		want         string
		written      bool
	}{
		{12, 12, "turns 12 of 12", false}, {9, 12, "turns 12 of 9", true}, {9, 14, "turns 12 of 9", false}, {13, 14, "turns 14 of 13", true}, {13, 14, "turns 14 of 13", false},
	} {
		var rec journal.Record
		if x := l.Revise(&rec, "talk", block(tt.limit), journal.StopCounters{Turns: tt.turns}, 20); x != nil {
			t.Errorf("%+v: Revise returns another change, %+v", tt, x)
		}
		for _, l := range []*Ledger{&l, reread(t, &l)} {
			if s := l.Stopped("talk"); s == nil || s.Reason != tt.want || s.Time != 9 {
				t.Errorf("%+v: the stop is %+v", tt, s)
			}
		}
		if written := len(rec.Meta) > 0; written != tt.written {
			t.Errorf("%+v: the record has %v", tt, rec.Meta)
		}
	}
}
