package recipes

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// TestStopMatches evaluates conditions on counters: some are compiled, some are not, and
// one fails.
func TestStopMatches(t *testing.T) {
	c := journal.StopCounters{Turns: 10, Messages: 4, Tokens: 300, Money: 2_500_000, Elapsed: 1_500_000_000}
	for match, want := range map[string]string{
		`event.turns > 9`:                                 "true <nil>",
		`event.turns > var.n`:                             "false <nil>",
		`event.messages == 4 && event.tokens < 301`:       "true <nil>",
		`event.money == 2.5`:                              "true <nil>",
		`event.seconds >= 1.5 && !(event.seconds > 1.5)`:  "true <nil>",
		`max(event.turns, event.messages) % 2 == 0`:       "true <nil>",
		`event.turns > event.messages * 3`:                "false <nil>",
		`contains([1, 10], event.turns)`:                  "true <nil>",
		`event.tokens / (event.messages - 4) > 1`:         "failed",
		`[for n in [1, 2] : n if n == event.turns] == []`: "true <nil>",
	} {
		text := fmt.Sprintf("variable \"n\" {\n  default = 10\n}\nstop_when \"s\" {\n  match = %s\n}\n", match) + surroundings
		d := mustLoad(t, write(t, text), Options{}).Deployment()
		ok, err := d.StopWhen[0].Match(&c)
		got := fmt.Sprint(ok, err)
		if err != nil {
			got = "failed"
		}
		if got != want {
			t.Errorf("%s is %v, %v; want %s", match, ok, err, want)
		}
	}
}
