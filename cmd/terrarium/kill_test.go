package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// kills is how often a test kills: usually a few times, in make test a third of them;
// TERRARIUM_KILLS sets another number.
func kills(t *testing.T, few int) int {
	text := os.Getenv("TERRARIUM_KILLS")
	if text == "" {
		if !seeded.Part(1, 2) {
			return (few + 2) / 3
		}
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TERRARIUM_KILLS is %q, and not a number", text)
	}
	return n
}

// TestKillLogTriage kills examples/log-triage six times in the middle of its
// input and runs it again on the same input. It ends with exactly the tallies of
// an undisturbed run, and every alert has been printed.
func TestKillLogTriage(t *testing.T) {
	t.Parallel()
	const killsPerSession = 6
	triage := newTriage(t, 30)
	undisturbed := newAlerts()
	undisturbed.take(triage.finish("undisturbed"))
	want := triage.tallies("undisturbed")
	if want["count.04 total"] != fmt.Sprint(triage.lines/4) {
		t.Fatalf("the undisturbed run has counted %v", want)
	}
	for round := range (kills(t, killsPerSession) + killsPerSession - 1) / killsPerSession {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			seed := seeded.For(t.Name())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			session, printed := fmt.Sprint("killed-", round), newAlerts()
			for i := range killsPerSession {
				// Half a part of the input at least is new to each run.
				part := float64(len(triage.log)) / (killsPerSession + 2)
				written := part * (float64(i+1) + random.Float64()/2)
				printed.take(triage.kill(t, session, int(written), 1+random.IntN(50)))
			}
			printed.take(triage.finish(session))
			if got := triage.tallies(session); !maps.Equal(got, want) {
				t.Errorf("it has counted\n%v\nwant\n%v", got, want)
			}
			for line, n := range undisturbed.count {
				if printed.count[line] < n {
					t.Errorf("%q was printed %d times, want %d at least", line, printed.count[line], n)
				}
			}
			for line := range printed.count {
				if undisturbed.count[line] == 0 {
					t.Errorf("%q was printed", line)
				}
			}
		})
	}
}

// triage runs examples/log-triage on a log, with sessions in one folder.
type triage struct {
	t     *testing.T
	dir   string
	args  []string
	log   string
	lines int
}

// newTriage makes a log that is that many times as long as the sample, and in which no two
// alerts are equal.
func newTriage(t *testing.T, times int) *triage {
	t.Helper()
	example, err := filepath.Abs("../../examples/log-triage")
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile(filepath.Join(example, "sample.log"))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for year := range times {
		for line := range strings.Lines(string(sample)) {
			fmt.Fprintf(&log, "%d%s", 2000+year, strings.TrimPrefix(line, "2026"))
		}
	}
	return &triage{
		t: t, dir: t.TempDir(), log: log.String(), lines: strings.Count(log.String(), "\n"),
		args: []string{"run", example, "--input", "lines=-", "--output", "alerts", "--exit-when-idle", "--session"},
	}
}

// finish runs it on the whole log, and returns what it printed.
func (x *triage) finish(session string) string {
	return once(x.t, x.dir, x.log, append(x.args, session)...)
}

// kill runs it on the beginning of the log, leaves its input open, kills it once it has
// printed that many alerts, and returns everything that it printed.
func (x *triage) kill(t *testing.T, session string, written, alerts int) string {
	t.Helper()
	p := start(t, x.dir, append(x.args, session)...)
	writing := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.in, x.log[:written])
		writing <- err
	}()
	var printed strings.Builder
	for range alerts {
		printed.WriteString(p.line() + "\n")
	}
	// Its input is still open, so it cannot have come to an end.
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&printed, p.out); err != nil {
		t.Fatal(err)
	}
	if err := <-writing; err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	p.cmd.Wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL || strings.Contains(p.stderr.String(), "Done") {
		t.Fatalf("it was to be killed, but ended with %v\n%s", p.cmd.ProcessState, p.stderr)
	}
	return printed.String()
}

// tallies reads what every creature of a session keeps, by its name and the
// key.
func (x *triage) tallies(session string) map[string]string {
	x.t.Helper()
	ctx := x.t.Context()
	e, err := terrarium.New(ctx, terrarium.Options{Dir: filepath.Join(x.dir, session)})
	if err != nil {
		x.t.Fatal(err)
	}
	defer e.Close(ctx)
	if _, problems, err := e.Restore(ctx); err != nil || len(problems) > 0 {
		x.t.Fatalf("Restore: %v, problems %v", err, problems)
	}
	graphs, err := e.Status("")
	if err != nil {
		x.t.Fatal(err)
	}
	out := map[string]string{}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			entries, err := e.State(ctx, c.ID, "")
			if err != nil {
				x.t.Fatal(err)
			}
			for _, entry := range entries {
				out[c.Name+" "+entry.Key] = string(entry.Value)
			}
		}
	}
	return out
}

// alerts count the lines that were printed. What a kill has cut off does not
// count.
type alerts struct{ count map[string]int }

func newAlerts() *alerts { return &alerts{map[string]int{}} }

func (a *alerts) take(printed string) {
	for line := range strings.Lines(printed) {
		if strings.HasSuffix(line, "\n") {
			a.count[line]++
		}
	}
}
