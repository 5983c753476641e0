package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

// TestKillSelfBuilding kills examples/self-building six times while its workers come
// and go, and runs it again on the same list. In the end every task has been done
// exactly once, as in an undisturbed run, no worker is left, and nothing is open.
func TestKillSelfBuilding(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	const killsPerSession = 6
	crew := newCrew(t, 1500)
	crew.complete("undisturbed")
	want := crew.results("undisturbed")
	if len(want) != crew.lines {
		t.Fatalf("the undisturbed run has %d results of %d tasks", len(want), crew.lines)
	}
	for round := range (kills(t, killsPerSession) + killsPerSession - 1) / killsPerSession {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			seed := seeded.For(t.Name())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			session := fmt.Sprint("killed-", round)
			for i := range killsPerSession {
				// Half a part of the list at least is new to each run.
				part := float64(len(crew.log)) / (killsPerSession + 2)
				written := part * (float64(i+1) + random.Float64()/2)
				crew.kill(t, session, int(written), 1+random.IntN(40))
			}
			crew.complete(session)
			if got := crew.results(session); !maps.Equal(got, want) {
				t.Errorf("done differently than undisturbed:\n%s", different(got, want))
			}
			for key, value := range crew.tallies(session) {
				if key == "foreman open" && value != "0" || strings.HasPrefix(key, "foreman worker/") {
					t.Errorf("at the end there is still %s = %s", key, value)
				}
			}
		})
	}
}

// newCrew makes a list of that many tasks, no two of which are equal.
func newCrew(t *testing.T, tasks int) *triage {
	t.Helper()
	example, err := filepath.Abs("../../examples/self-building")
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for n := range tasks {
		fmt.Fprintf(&list, "%s %d\n", []string{"factor", "sha256", "words"}[n%3], int64(1_000_000_000_000)+7*int64(n))
	}
	return &triage{
		t: t, dir: t.TempDir(), log: list.String(), lines: tasks,
		args: []string{"run", example, "--input", "tasks=-", "--output", "results", "--exit-when-idle", "--session"},
	}
}

// complete runs it on the whole list. A request of a killed run to a worker that has been
// removed becomes a dead letter, which the exit code of the run shows.
func (x *triage) complete(session string) {
	x.t.Helper()
	cmd := exec.Command(program(), append(x.args, session)...)
	cmd.Dir, cmd.Stdin = x.dir, strings.NewReader(x.log)
	cmd.Env = append(os.Environ(), "TMPDIR="+x.t.TempDir())
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != exitDeadLetters) {
		x.t.Fatalf("%v\n%s", err, out)
	}
}

// results counts what the log of a session has on the channel results, and on problems.
func (x *triage) results(session string) map[string]int {
	x.t.Helper()
	lines := once(x.t, x.dir, "", "events", session, "--kind", "channel_message", "--channel", "results", "--channel", "problems", "-o", "json")
	count := map[string]int{}
	for line := range strings.Lines(lines) {
		var event struct{ Payload string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			x.t.Fatal(err)
		}
		count[event.Payload]++
	}
	return count
}

// different lists where two counts differ.
func different(got, want map[string]int) string {
	var b strings.Builder
	for line, n := range want {
		if got[line] != n {
			fmt.Fprintf(&b, "%q: %d times, want %d\n", line, got[line], n)
		}
	}
	for line, n := range got {
		if want[line] == 0 {
			fmt.Fprintf(&b, "%q: %d times, want none\n", line, n)
		}
	}
	return b.String()
}
