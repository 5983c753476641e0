package sqlitestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// damageCatalog overwrites a catalogue, and its log, with rubble.
func damageCatalog(t *testing.T, dir string) {
	t.Helper()
	for suffix, text := range map[string]string{"": "rubble", "-wal": "a log"} {
		if err := os.WriteFile(filepath.Join(dir, catalog.Name+suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledWhileRebuilding kills a process that rebuilds a catalogue at every step, several
// times in a row. The directory can be opened only if the catalogue is complete. Otherwise the
// error has the remedy to rebuild it, which has the same result as without the kills.
func TestKilledWhileRebuilding(t *testing.T) {
	t.Parallel()
	sound := lineaged(t)
	for _, c := range []struct {
		name   string
		lose   func(*testing.T, string)
		points []failpoint.Point
	}{
		{"Lost", loseCatalog, []failpoint.Point{failpoint.Remaking, failpoint.Rewriting, failpoint.Remade, failpoint.Installing, failpoint.Installed}},
		{"Damaged", damageCatalog, rebuilds},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := duplicate(t, sound)
			c.lose(t, dir)
			var killed int
			for _, point := range c.points {
				for pass := range int32(2) {
					if !seeded.Part(int(pass), 2) {
						continue
					}
					k := &killer{t: t, dir: dir, random: rand.New(rand.NewPCG(0, 0)), reports: newReports()}
					k.live(order{Dir: dir, Rebuild: true, Point: point, Pass: pass + 1})
					if k.died == point {
						killed++
						wantRebuildable(t, dir, sound)
					}
					if k.died != point || point == failpoint.Installed { // the catalogue is complete
						c.lose(t, dir)
					}
				}
			}
			if killed < len(c.points) {
				t.Errorf("killed %d times, at %d points", killed, len(c.points))
			}
			if _, err := Rebuild(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			wantSame(t, sound, dir)
			if left, err := filepath.Glob(filepath.Join(dir, catalog.Name+files.PartialSuffix+"*")); err != nil || len(left) > 0 {
				t.Errorf("%v are left over; %v", left, err)
			}
		})
	}
}

// wantRebuildable checks copies of a directory in which Rebuild was killed: it opens one, and
// rebuilds another.
func wantRebuildable(t *testing.T, dir, sound string) {
	t.Helper()
	opened := duplicate(t, dir)
	d, err := Open(t.Context(), opened, Options{})
	if err == nil {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		wantSame(t, sound, opened)
	} else if abi.CodeOf(err) != abi.Storage || !strings.Contains(remedyOf(err), "session rebuild") {
		t.Errorf("opening the directory: %v; want the advice to rebuild it", err)
	}
	again := duplicate(t, dir)
	switch _, err := Rebuild(t.Context(), again); {
	case d != nil && abi.CodeOf(err) == abi.Conflict: // the catalogue is complete
	case err != nil || d != nil:
		t.Errorf("rebuilding the directory: %v; it could be opened: %v", err, d != nil)
	}
	wantSame(t, sound, again)
}

func wantSame(t *testing.T, sound, dir string) {
	t.Helper()
	for _, d := range differences(t, sound, dir) {
		t.Error(d)
	}
}

// stepSeeds is how often the power fails at each step in a run of the tests. The seed
// determines which unsynced writes survive. TERRARIUM_SEEDS requests more.
const stepSeeds = 1

// TestPowerLossWhileRebuilding lets the power fail at every step. There is either the whole
// catalogue or none, and it can be rebuilt.
func TestPowerLossWhileRebuilding(t *testing.T) {
	seeded.Long(t)
	sound := lineaged(t)
	for _, point := range []failpoint.Point{failpoint.Remaking, failpoint.Rewriting, failpoint.Remade, failpoint.Installing, failpoint.Installed, failpoint.Count} {
		for seed := range uint64(seeds(t, stepSeeds)) {
			t.Run(fmt.Sprintf("%s/seed=%d", pointName(point), seed), func(t *testing.T) {
				dir := duplicate(t, sound)
				loseCatalog(t, dir)
				disk := losevfs.Mount(dir, seed)
				_, err := rebuildWith(t.Context(), dir, failpoint.Hooks{Synced: disk.Synced, Renamed: disk.Renamed, Reached: func(p failpoint.Point, _ string) error {
					if p == point {
						disk.Die()
						return errDisk // no process is left that could continue
					}
					return nil
				}})
				if (err == nil) != (point == failpoint.Count) {
					t.Fatalf("Rebuild: %v", err)
				}
				if err := disk.PowerOff(); err != nil {
					t.Fatal(err)
				}
				rebooted(t, dir)
				if missing(filepath.Join(dir, catalog.Name)) {
					if point == failpoint.Count {
						t.Fatal("a catalogue that Rebuild reported is not durable")
					}
					if _, err := Rebuild(t.Context(), dir); err != nil {
						t.Fatal(err)
					}
				}
				wantSame(t, sound, dir)
			})
		}
	}
}

// remedyOf returns the remedy of an error.
func remedyOf(err error) string {
	var typed *abi.Error
	if errors.As(err, &typed) {
		return typed.Remedy
	}
	return ""
}
