package sqlitestore

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
	"go.uber.org/goleak"
)

const (
	victimOrder     = "SQLITESTORE_VICTIM"
	killsPerSession = 8               // a directory grows with every kill, and is checked as a whole after each
	mostSteps       = 150             // of a life that does not end before
	mostOfALife     = 4 * time.Minute // after that, a life counts as stuck
)

// order is what a victim must do.
type order struct {
	Dir        string
	Durability string
	Seed       uint64
	Point      failpoint.Point // where to die, at the given pass; failpoints: anywhere
	Pass       int32
	Rebuild    bool     // instead of running the program
	Editing    *editing `json:",omitempty"` // instead of running the program
	Errand     *errand  `json:",omitempty"` // instead of running the program
	Lines      int      // a random moment is after one of this many lines of its output; 0: 50
}

// kills is how often TestKilled kills: usually at few of the failpoints, and at three times as
// many with TERRARIUM_EVERY. TERRARIUM_KILLS sets another number.
func kills(t *testing.T) int {
	text := os.Getenv("TERRARIUM_KILLS")
	if text == "" {
		if seeded.Part(1, 2) {
			return 3 * killsPerSession
		}
		return killsPerSession
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TERRARIUM_KILLS is %q, which is not a number", text)
	}
	return n
}

// TestMain runs the victim of TestKilled instead of the tests if the environment has an order
// for it.
func TestMain(m *testing.M) {
	if text := os.Getenv(victimOrder); text != "" {
		if err := victim(text); err != nil {
			tell(progress{Word: "error", Text: err.Error()})
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Programs on files take long. TERRARIUM_SEEDS or the command line may request more of
	// them.
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("TERRARIUM_SEEDS"), "4")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(ramdisk.Tests(m))
}

// tell prints a line. The reader ignores an incomplete line.
func tell(line progress) { _ = json.NewEncoder(os.Stdout).Encode(line) }

// smallChunks makes copying take many steps, so that it can be interrupted at each. Nothing is
// synced, because what a killed process has written is not lost.
func smallChunks(reached func(failpoint.Point, string) error) Options {
	o := WithoutSyncs
	o.hooks.Reached, o.hooks.CopyChunk, o.hooks.UniteChunk = reached, 16<<10, 20
	o.naps, o.hooks.Outgrown = fewAwake, 48<<10
	return o
}

// fewAwake makes stores fall asleep and wake up all the time.
var fewAwake = naps{most: 1, first: time.Millisecond}

// copying lets cuts copy small histories in every second program. The background then copies
// less, so programs that must end in one of its steps are excluded.
func copying(seed uint64, end failpoint.Point, o Options) Options {
	if seed%2 == 1 && (end < failpoint.Noting || end > failpoint.Moved) {
		o.hooks.SmallEvents = int64(8 + seed%64)
	}
	return o
}

// victim runs the program until it is killed, or kills itself.
func victim(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Editing != nil {
		return editAway(o)
	}
	if o.Errand != nil {
		return o.Errand.run(o)
	}
	if o.Rebuild {
		_, err := rebuildWith(context.Background(), o.Dir, failpoint.Hooks{Reached: dieAt(o.Point, o.Pass)})
		tell(progress{Word: "end"})
		return err
	}
	durability, _ := journal.ParseDurability(o.Durability)
	losevfs.Mount(o.Dir, 0) // so that SQLite does not sync either
	p := &program{ctx: context.Background(), random: rand.New(rand.NewPCG(o.Seed, 1)), durability: durability, tell: tell}
	err := p.start(o.Dir, copying(o.Seed, o.Point, smallChunks(dieAt(o.Point, o.Pass))))
	if err == nil {
		err = p.run(mostSteps)
	}
	if err == nil {
		err = p.d.Close()
	}
	tell(progress{Word: "end"})
	return err
}

// dieAt kills this process at a pass of a failpoint.
func dieAt(point failpoint.Point, pass int32) func(failpoint.Point, string) error {
	passes := make(chan int32, 1)
	passes <- pass
	return func(p failpoint.Point, _ string) error {
		if p != point {
			return nil
		}
		left := <-passes - 1
		if left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		passes <- left
		return nil
	}
}

// TestKilled kills a process again and again while it appends, cuts, creates, retires and
// copies: at every failpoint, and at random moments. The next process continues in the same
// directory by itself. Everything that was acknowledged is in every session that descends from
// the one that it was written to: once, in order, and together with its rows. Lineages are
// right, and nothing is left over.
func TestKilled(t *testing.T) {
	t.Parallel()
	n := kills(t)
	for i, durability := range []journal.Durability{journal.Full, journal.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			seed := seeded.For(t.Name())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			var killed [failpoint.Count + 1]int
			for todo := targets(random, i, n/2); len(todo) > 0; {
				now := min(len(todo), killsPerSession)
				k := newKiller(t, durability, random)
				for _, point := range todo[:now] {
					k.kill(point)
					killed[k.died]++
				}
				todo = todo[now:]
			}
			t.Logf("killed at %v", killed)
		})
	}
}

// targets returns n failpoints to die at: every second failpoint, then every one, and so on,
// with random moments (failpoints) between them. A directory is upgraded only once, so a
// session of kills begins with a point of that.
func targets(random *rand.Rand, first, n int) (out []failpoint.Point) {
	var points []failpoint.Point
	for len(out) < n {
		if len(out)%killsPerSession == 0 {
			out = append(out, upgrades[(len(out)/killsPerSession+first)%len(upgrades)])
			continue
		}
		if len(points) == 0 {
			for p := failpoint.Point(first); p < failpoint.Count; p += 2 {
				if !isApart(p) && !slices.Contains(upgrades, p) {
					points = append(points, p)
				}
			}
			points = append(points, failpoint.Count, failpoint.Count, failpoint.Count, failpoint.Count)
			first = 1 - first
			random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		}
		out, points = append(out, points[0]), points[1:]
	}
	return out
}

var (
	upgrades = []failpoint.Point{failpoint.OriginalCopied, failpoint.OriginalKept, failpoint.Migrated}
	// rebuilds are the points that are passed only if the catalogue is lost; see
	// TestKilledWhileRebuilding.
	rebuilds = []failpoint.Point{failpoint.Remaking, failpoint.Rewriting, failpoint.Remade, failpoint.SettingAside, failpoint.SetAside, failpoint.Installing, failpoint.Installed}
	// losses are the points that are passed only if a power loss has undone a part of a cut;
	// see TestLooseCut.
	losses = []failpoint.Point{failpoint.TakingBack, failpoint.TakenBack}
	// looses are the points of making a cut durable later. With the durability full, a cut is
	// durable at once.
	looses = []failpoint.Point{failpoint.Loose, failpoint.Firming, failpoint.Firm}
)

// isApart reports whether a point is passed only by special work: rebuilding, forking, exporting,
// or undoing what a power loss has left.
func isApart(p failpoint.Point) bool {
	return slices.Contains(slices.Concat(rebuilds, forks, exports, losses), p)
}

// killer kills the owner of one directory several times.
type killer struct {
	t          *testing.T
	dir        string
	durability journal.Durability
	random     *rand.Rand
	reports    *reports
	died       failpoint.Point // where the last life ended; failpoints: anywhere
}

func newKiller(t *testing.T, durability journal.Durability, random *rand.Rand) *killer {
	k := &killer{t: t, dir: t.TempDir(), durability: durability, random: random, reports: newReports()}
	k.reports.happened(&progress{Word: "creating", Children: []plan{{Graph: oldDirectory(t, k.dir, durability)}}})
	return k
}

// kill lets a process live until it dies at the point, and checks what it has left.
func (k *killer) kill(point failpoint.Point) {
	k.t.Helper()
	o := order{Dir: k.dir, Durability: k.durability.String(), Seed: k.random.Uint64(), Point: point, Pass: 1 + k.random.Int32N(2)}
	switch {
	case slices.Contains(upgrades, point), point == failpoint.Opened:
		o.Pass = 1
	case point == failpoint.Appending, point == failpoint.Appended, point == failpoint.Uniting, point == failpoint.United, point == failpoint.Copying:
		o.Pass = 1 + k.random.Int32N(30)
	}
	k.live(o)
	k.reports.check(k.t, k.dir, k.random, k.random.IntN(3) == 0)
	if k.t.Failed() {
		k.t.Fatalf("after a life that was to end at %s, pass %d, seed %d", pointName(o.Point), o.Pass, o.Seed)
	}
}

func pointName(p failpoint.Point) string {
	if p >= failpoint.Count {
		return "random"
	}
	return p.String()
}

// live runs a process until it dies.
func (k *killer) live(o order) {
	k.t.Helper()
	k.died = o.Point
	runVictim(k.t, o, k.random, k.listen)
}

// runVictim runs a process until it dies: at the order's point or, without one, shortly after
// some line of its output.
func runVictim(t *testing.T, o order, random *rand.Rand, listen func(line []byte)) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), victimOrder+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(mostOfALife, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // it prints where
	defer stuck.Stop()
	lines := -1
	if o.Point == failpoint.Count {
		lines = 1 + random.IntN(cmp.Or(o.Lines, 50))
	}
	var alarm *time.Timer
	scanner := bufio.NewScanner(out)
	for scanner.Buffer(nil, 1<<20); scanner.Scan(); {
		listen(scanner.Bytes())
		if lines--; lines == 0 {
			alarm = time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	if alarm != nil {
		alarm.Stop()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // Wait returns an error, because the process was killed
}

func (k *killer) listen(text []byte) {
	k.t.Helper()
	var line progress
	if json.Unmarshal(text, &line) != nil {
		return // half a line acknowledges nothing
	}
	if line.Word == "end" { // the point was not passed that often
		k.died = failpoint.Count
	}
	if err := k.reports.take(line); err != nil {
		k.t.Error(err)
	}
}

// oldDirectory makes a directory of the previous version, with an empty session.
func oldDirectory(t *testing.T, dir string, durability journal.Durability) journal.GraphID {
	t.Helper()
	const session = "01900000-0000-7000-8000-000000000000"
	store := filepath.Join(dir, files.Stores, session+files.StoreSuffix)
	if err := os.MkdirAll(filepath.Dir(store), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, old := range []struct {
		schema *sqlite.Schema
		path   string
	}{{storefile.Schema, store}, {catalog.Schema, filepath.Join(dir, catalog.Name)}} {
		first := "00001_store.sql"
		if old.schema == catalog.Schema {
			first = "00001_catalog.sql"
		}
		script, err := fs.ReadFile(old.schema.Migrations, first)
		if err != nil {
			t.Fatal(err)
		}
		content, err := sqlite.NewSchema("an old file", old.schema.ApplicationID, 1, fstest.MapFS{first: {Data: script}}, nil).Template()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(old.path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, store, fmt.Sprintf(`DELETE FROM store;
		INSERT INTO store VALUES ('session', '%[1]s'), ('graph', 'old'), ('born', '1'), ('durability', '%[2]s'), ('created', '1'), ('cut', '');
		INSERT INTO ancestor (session, ordinal, graph, created, merged_at, split_at) VALUES ('%[1]s', 0, 'old', 1, 0, 0)`, session, durability))
	execute(t, filepath.Join(dir, catalog.Name), fmt.Sprintf(`INSERT INTO store
		(session, graph, born, durability, live, complete, created, merged_at, split_at) VALUES ('%s', 'old', 1, '%s', 1, 1, 1, 0, 0)`, session, durability))
	return "old"
}
