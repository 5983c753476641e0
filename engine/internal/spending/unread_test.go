package spending

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestUnreadCounters proves that counters that cannot be read use up the budgets that they
// belong to, are not changed, and follow the graph.
func TestUnreadCounters(t *testing.T) {
	own := []capability.Budget{{Unit: "tokens", Creature: 100}}
	graph := []capability.Budget{{Unit: "tokens", Graph: 100}}
	one := map[string]int64{"tokens": 1}
	for _, value := range []string{``, `null`, `[]`, `7`, `{"tokens":7}`, `{"tokens":{"charged":"7"}}`, `{"tokens":{"charged":1e40}}`, `{"tokens":{"charged":-7}}`, `{"tokens":{"charged":7,"returned":8}}`, `{"tokens":{"charged":7,"returned":-1}}`, `{"tokens":{"charged":7}`} {
		name := storemeta.UsedPrefix + "c1 " + llm
		var read, l Ledger
		if rest := read.Read(map[string]string{name: value, "other": "x"}); len(rest) != 1 || rest["other"] != "x" {
			t.Errorf("%q: the rest is %v", value, rest)
		}
		l.Inherit(read)
		change := func(creature journal.CreatureID, capability string, budgets []capability.Budget) (*journal.Record, error) {
			rec := &journal.Record{}
			_, err := l.Change(rec, Key{capability, creature}, journal.EventID{}, budgets, one)
			return rec, err
		}
		for _, tt := range []struct {
			creature   journal.CreatureID
			capability string
			budgets    []capability.Budget
			refused    bool
		}{
			{"c1", llm, own, true}, {"c1", llm, graph, true}, {"c2", llm, graph, true},
			{"c2", llm, own, false}, {"c1", "llm.other", own, false}, {"c1", "llm.other", graph, false}, {"c1", llm, nil, false},
		} {
			rec, err := change(tt.creature, tt.capability, tt.budgets)
			var e *abi.Error
			switch {
			case !tt.refused && err != nil:
				t.Errorf("%q: %s and %s %v: %v", value, tt.creature, tt.capability, tt.budgets, err)
			case tt.refused && (!errors.As(err, &e) || e.Code != abi.LimitExceeded || e.IDs["creature"] != "c1" || !strings.Contains(e.Message, llm) || e.Remedy == ""):
				t.Errorf("%q: %s and %s %v was not refused for unread counters: %v", value, tt.creature, tt.capability, tt.budgets, err)
			}
			if _, overwritten := rec.Meta[name]; overwritten {
				t.Errorf("the counters %q were overwritten", value)
			}
		}
		if got := l.Meta(map[string]string{"other": "x"}); got[name] != value || got["other"] != "x" {
			t.Errorf("%q: the store would get %q", value, got)
		}
	}
}
