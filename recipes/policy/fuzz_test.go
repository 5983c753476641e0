package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// FuzzJudge judges events of all kinds with a state: the decision is the same twice, and
// the new state is JSON of a bounded size.
func FuzzJudge(f *testing.F) {
	for _, script := range telling {
		f.Add(script, uint8(0), `{}`)
	}
	for i, script := range hostile {
		if i%4 == 0 {
			f.Add(script, uint8(i), `{"n":1}`)
		}
	}
	f.Add(`(e, c) => { c.state.n++; return patch({names: {work: "unify"}}); }`, uint8(5), `{"n":1}`)
	f.Add(`(e) => e.failures > 3 ? quarantine("again") : restart()`, uint8(10), `null`)
	f.Fuzz(func(t *testing.T, script string, kind uint8, state string) {
		if !json.Valid([]byte(state)) || len(state) > deploy.MaxPolicyMemory {
			return
		}
		kinds := journal.PolicyKinds()
		on := kinds[int(kind)%len(kinds)]
		s, faults := New([]Policy{{Name: "p", On: on, Source: script, Mode: Mutate, Timeout: 50 * time.Millisecond}}, Options{})
		if len(faults) > 0 {
			return
		}
		judge := func() (string, string) {
			m := memory{string(on) + ".p": state}
			if on != journal.JudgeSend {
				return describeDecision(s.Judge(t.Context(), happening(on, m))), m[string(on)+".p"]
			}
			e := event("x")
			e.Surroundings = happening(journal.JudgeSpawn, m).Surroundings
			return describeSend(s.Send(t.Context(), e)), m[string(on)+".p"]
		}
		first, kept := judge()
		if kept != "" && !json.Valid([]byte(kept)) || len(kept) > deploy.MaxPolicyMemory {
			t.Errorf("it remembers %q", kept)
		}
		if slow(first) {
			return
		}
		if again, kept2 := judge(); !slow(again) && (again != first || kept2 != kept) {
			t.Errorf("it said %s and remembered %s, and then %s and %s", first, kept, again, kept2)
		}
	})
}

// slow reports whether a decision is a timeout, which depends on the machine.
func slow(decision string) bool { return strings.Contains(decision, "it ran for longer than") }
