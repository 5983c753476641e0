package sqlitestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// copyOperations is the approximate number of writes and syncs in a copy of a small session.
const copyOperations = 120

// TestPowerLossWhileCopying lets the power fail while a session is forked or exported, or an
// exported file is adopted: at every step, and at random moments. The source is not changed.
// There is either the whole copy or none. Copying again either makes the copy or reports that
// it exists, and nothing else is left over. make test runs some of the steps.
func TestPowerLossWhileCopying(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	points := map[string][]failpoint.Point{"fork": forkPoints, "fork-at": forkPoints, "export": exportPoints, "adopt": adoptPoints}
	from := handedOn(t, false)
	answers := answersOf(t, from)
	for seed := range uint64(seeds(t, everyStepShare)+everyStepShare-1) / everyStepShare {
		for word, list := range points {
			for i, point := range list {
				if every := (uint64(i)+seed)%2 == 1; strings.HasPrefix(word, "fork") && every != (word == "fork-at") {
					continue // each of the two kinds of forks runs every second step
				}
				if !seeded.Part(i/2, everyStepPart) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s-%d/seed=%d", word, pointName(point), i, seed), func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					c := newPowerlessCopy(t, from, word, random)
					c.answers = answers
					c.run(t, point, random)
				})
			}
		}
	}
}

// powerlessCopy is an errand on a disk whose power fails.
type powerlessCopy struct {
	errand
	root, from string
	want       string                       // what the copy must contain
	answers    map[journal.SessionID]string // the content of the source
}

func newPowerlessCopy(t *testing.T, from, word string, random *rand.Rand) *powerlessCopy {
	t.Helper()
	c := &powerlessCopy{root: filepath.Join(t.TempDir(), "disk")}
	c.from = filepath.Join(c.root, "pond")
	if err := os.CopyFS(c.from, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	sessions := liveSessions(t, c.from)
	c.errand = errand{Word: word, Session: sessions[random.IntN(len(sessions))], Owner: random.IntN(2) == 0}
	switch word {
	case "fork-at":
		c.At = markIn(t, c.from, c.Session, random)
	case "adopt":
		c.File = filepath.Join(c.root, "alone.db")
		if err := mustView(t, c.from).Export(t.Context(), c.Session, c.File); err != nil {
			t.Fatal(err)
		}
	}
	c.To = filepath.Join(c.root, "copy.db")
	c.want = undisturbed(t, &c.errand, c.from)
	return c
}

// run makes the copy until the power fails, and checks what exists when the power is back.
func (c *powerlessCopy) run(t *testing.T, point failpoint.Point, random *rand.Rand) {
	t.Helper()
	disk := losevfs.Mount(c.root, random.Uint64())
	if point == failpoint.Count {
		disk.DieAfter(1 + random.IntN(copyOperations))
	}
	options := smallChunks(func(at failpoint.Point, _ string) error {
		if at == point {
			disk.Die()
		}
		return nil
	})
	options.hooks.Unsynced = false
	options.hooks.Synced, options.hooks.Renamed, options.hooks.Linked = disk.Synced, disk.Renamed, disk.Linked
	err := c.do(t.Context(), c.from, options)
	if err != nil && !disk.Dead() {
		t.Fatalf("the copy failed, although there is power: %v", err)
	}
	if slices.Contains(append(forks, exports...), point) && !disk.Dead() {
		t.Error("the power has not failed")
	}
	if err := disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	rebooted(t, c.from)
	wantAnswers(t, c.from, c.answers)
	c.finish(t, c.from, c.want)
}
