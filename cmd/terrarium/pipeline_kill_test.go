package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// killsPerPipelines is how often one session is killed before it may finish:
// every cut copies the whole history.
const killsPerPipelines = 25

// TestKillPipelines kills the pipelines of testdata/pipeline at random moments, of starts and
// of cuts too, and lets them finish in the end. Then every creature has counted every entry
// once and in order, every output was printed, again only under the same id, nothing became a
// dead letter, and the session is intact.
func TestKillPipelines(t *testing.T) {
	t.Parallel()
	for _, durability := range []journal.Durability{journal.Full, journal.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			for round, left := 0, kills(t, 3); left > 0 && !t.Failed(); round++ {
				n := min(left, killsPerPipelines)
				left -= n
				t.Run(fmt.Sprint(round), func(t *testing.T) { killPipelines(t, durability, n) })
			}
		})
	}
}

// killPipelines kills one session that many times and then lets it finish.
func killPipelines(t *testing.T, durability journal.Durability, kills int) {
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	b := newReports(t, durability, seed)
	for range kills {
		b.life(b.anyMoment(), 0)
	}
	goal := b.marks() + 50
	b.life(never, goal)
	b.checkOutputs(goal)
	b.checkSession(goal)
	t.Logf("%d outputs, %d of them printed again; %d merges, %d splits; %d kills: %d while starting, %d within a cut, %d right after one",
		8*goal, b.again, b.cuts["merge"], b.cuts["split"], kills, b.died.starting, b.died.within, b.died.after)
}

// moment says when a life ends: delay after so many lines that begin with a
// word, any word if it is empty; or after the start if lines is 0.
type moment struct {
	word  string
	lines int
	delay time.Duration
}

var never = moment{lines: math.MaxInt}

func (b *reports) anyMoment() moment {
	within := func(d time.Duration) time.Duration { return time.Duration(b.random.Int64N(int64(d))) }
	switch b.random.IntN(8) {
	case 0:
		return moment{delay: within(60 * time.Millisecond)} // most often within the start
	case 1, 2, 3:
		return moment{"cutting", 1 + b.random.IntN(3), within(5 * time.Millisecond)}
	case 4:
		return moment{"cut", 1 + b.random.IntN(3), within(time.Millisecond)}
	}
	return moment{"", 1 + b.random.IntN(500), within(10 * time.Millisecond)}
}

// life runs the pipelines until the moment has come, or their end.
func (b *reports) life(end moment, goal uint64) {
	b.t.Helper()
	cmd := exec.Command("pipelines", b.dir, b.durability.String(), fmt.Sprint(b.random.Uint64()), fmt.Sprint(goal))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	kill := func() { cmd.Process.Kill() }
	stuck := time.AfterFunc(deadline, func() { cmd.Process.Signal(syscall.SIGQUIT) }) // it tells where
	defer stuck.Stop()
	b.present, b.out["a"].at, b.out["b"].at = lifeNotes{}, -1, -1
	failure := b.listen(out, end, kill)
	cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	switch {
	case failure != nil:
		b.t.Fatalf("%v\n%s", failure, &stderr)
	case killed != (goal == 0) || b.present.done != (goal != 0):
		b.t.Fatalf("it ended with %v\n%s", cmd.ProcessState, &stderr)
	case goal != 0:
		return
	}
	switch {
	case !b.present.spoke:
		b.died.starting++
	case b.present.cutting:
		b.died.within++
	case end.word == "cut":
		b.died.after++
	}
}

// listen records what a life reports, and kills it when the moment has come.
func (b *reports) listen(out io.Reader, end moment, kill func()) error {
	alarm := func() *time.Timer { return time.AfterFunc(end.delay, kill) }
	var timer *time.Timer
	if end.lines == 0 {
		timer = alarm()
	}
	var failure error
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line that was cut off does not count
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		b.present.spoke = true
		if err := b.take(word, strings.Fields(rest)); err != nil && failure == nil {
			failure = err
			kill()
		}
		if end.word == "" || end.word == word {
			if end.lines--; end.lines == 0 {
				timer = alarm()
			}
		}
	}
	if timer != nil {
		timer.Stop()
	}
	return failure
}

// TestLedgerIsCurrent proves that the prebuilt guest matches its source.
func TestLedgerIsCurrent(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed; make toolchains installs it")
	}
	built := filepath.Join(t.TempDir(), "ledger.wasm")
	if out, err := exec.Command(tool, filepath.Join(pipelineRecipe, "ledger.wat"), "-o", built).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s", err, out)
	}
	want, werr := os.ReadFile(built)
	got, gerr := os.ReadFile(filepath.Join(pipelineRecipe, "ledger.wasm"))
	if err := errors.Join(werr, gerr); err != nil || string(got) != string(want) {
		t.Errorf("ledger.wasm is not what ledger.wat says: build it again with wat2wasm; %v", err)
	}
}
