package engine_test

// The simulator runs an engine in one goroutine. A seed decides everything:
// which creature is served next and what happens in the middle of its turn (a
// send, a change of the topology, other creatures, a crash), when the clock
// moves, how much of the log gets written and synced, which calls of the
// storage fail. Its parts:
//
//   - internal/sim: the disk and the clock. The disk passes storetest.
//   - export_sim_test.go: an engine without goroutines, driven by Serve (one
//     turn) and Ring (timers that are due).
//   - sim_guest_test.go: the one behaviour of all creatures, which follows the
//     orders in payloads.
//   - sim_steps_test.go: what a program may do. A step is a few numbers that
//     choose among what exists, so any step can be left out.
//   - sim_deploy_test.go: deployments, which are applied, some of them to graphs
//     without a store, and applied again after a restart, as they were or
//     changed, while their graphs are still dormant.
//   - sim_outside_test.go: the users outside of the engine: readers, whose
//     cursors outlive it, and callers, which wait for an answer.
//   - sim_cuts_test.go: graphs and their sessions. After every change, the
//     graphs are what a breadth-first search over the edges of the environments
//     finds (before a restart: over those in the stores), no remaining creature
//     has lost an instance, a timer, a request, a delivery being handled or an
//     alias, and new sessions have the parents that their members come from.
//     Every fourth program checks all histories and lineages (archive_test.go):
//     each is the union of its parents' and what it wrote itself, and never
//     changes; how much of it has been copied after a cut makes no difference.
//   - sim_tools_test.go: turns that edit their graph by tools. What a turn has seen
//     staged is what its commit makes, all of it or nothing, even if the process
//     dies in the middle; nothing stays of a turn that is not in the log.
//   - sim_approvals_test.go: a policy that asks, and operators who answer. No message
//     leaves while its question waits or after it was denied, at most one leaves for an
//     approval, and every question has an end.
//   - sim_watch_test.go: a subscriber that gets what is logged once, in order.
//   - sim_catchup_test.go: a subscriber that reads all events across cuts and
//     crashes, one subscription after the other, each once and in order.
//   - sim_world_test.go: how a program runs, crashes, restarts and settles.
//   - sim_model_test.go: what must be known apart from the log, as facts with a
//     stamp, their place in the log: a crash removes those whose place it
//     has removed, and the rest is what must have survived.
//   - sim_check_test.go: what must hold. checkLog checks it whenever no turn is
//     running: each delivery ends once, in order; turns have the effects that
//     their payloads order; state, heads, offsets and dead letters are the
//     sum of the log; what was acknowledged exists. check, once all has
//     settled: every listener has dealt with all that was sent while it
//     listened, and nothing else; requests are answered once; timers have fired.
//     At the end of a program a restart must not change anything (view).
//
// Graphs without a store have no log to check. When one becomes part of a graph with a
// store, the model notes what it brings along: its listeners, its undelivered messages
// (edgeFact.handed), and where the numbers of its channels begin (bases). From then on
// everything must hold.
//
// To extend it: add an order to guest for a new ability of creatures, or a step to
// stepKinds for one of the engine's users. If the effect can be read from the log, read
// it in readLog and check it against payloads. If not, note a fact with a stamp in model,
// drop it in survive, and compare it in reconcile (after a crash) and check. What a
// restart must keep goes into view. Work in the background is a step that does a part of
// it, so that crashes come in between.

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

var simSeed = flag.Uint64("seed", 0, "run just this program of TestSimulation")

// TestSimulation runs random programs on an engine without goroutines, over a disk that
// forgets and a clock that the test moves, next to a model.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		if failure, _ := simulate(*simSeed, simProgram(*simSeed), false); failure != "" {
			reportSimulation(t, *simSeed, failure)
		}
		return
	}
	seeds := uint64(simSeeds)
	if !seeded.Part(1, 2) {
		seeds /= 2
	}
	if testing.Short() {
		seeds /= 10
	}
	if n, err := strconv.ParseUint(os.Getenv("TERRARIUM_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	// Programs are short and make much garbage, so collecting it less often saves a fifth
	// of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	first := seeded.First()
	var next, failed atomic.Uint64
	var failure atomic.Value
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for n := next.Add(1); n <= seeds && failed.Load() == 0; n = next.Add(1) {
				seed := first + n - 1
				if f, _ := simulate(seed, simProgram(seed), false); f != "" && failed.CompareAndSwap(0, seed) {
					failure.Store(f)
				}
			}
		})
	}
	group.Wait()
	if seed := failed.Load(); seed != 0 {
		reportSimulation(t, seed, failure.Load().(string))
	}
}

// simProgram draws the program of a seed.
func simProgram(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var program []step
	for _, name := range []string{"addCreature", "addCreature", "addCreature", "connect", "connect", "addChannel", "setEdge", "setEdge", "write"} {
		st := drawStep(r)
		st.kind = stepKind(name)
		program = append(program, st)
	}
	if aboutApprovals(seed) {
		program = append(program, step{kind: stepKind("deploy"), b: 2 + 3*r.IntN(20), seed: r.Uint64()})
	}
	for range 5 + r.IntN(60) {
		program = append(program, drawStep(r))
	}
	return program
}

// reportSimulation shrinks a program that fails and prints the result.
func reportSimulation(t *testing.T, seed uint64, failure string) {
	t.Helper()
	program := shrink(seed, simProgram(seed))
	small, trace := simulate(seed, program, true)
	var b strings.Builder
	for i, st := range program {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, st)
	}
	t.Fatalf("seed %d: %s\n\nrun it again:  go test ./engine -run TestSimulation -seed %d\n\nthe smallest program that fails:\n%s\nfails with: %s\n\nin detail:\n%s",
		seed, failure, seed, &b, small, strings.Join(trace, "\n"))
}

// shrink leaves out steps of a program as long as it fails.
func shrink(seed uint64, program []step) []step {
	for size := len(program) / 2; size > 0; {
		smaller := false
		for from := 0; from+size <= len(program); {
			without := slices.Delete(slices.Clone(program), from, from+size)
			if failure, _ := simulate(seed, without, false); failure != "" {
				program, smaller = without, true
			} else {
				from += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return program
}
