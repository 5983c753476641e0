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
	mostSteps       = 150             // of a life that its own end does not reach
	mostOfALife     = 4 * time.Minute // and then it is stuck
)

// order is what a victim is to do.
type order struct {
	Dir        string
	Durability string
	Seed       uint64
	Point      failpoint.Point // where to die, at the given pass; failpoints: anywhere
	Pass       int32
	Rebuild    bool     // instead of running the program
	Editing    *editing `json:",omitempty"` // instead of running the program
	Errand     *errand  `json:",omitempty"` // instead of running the program
	Lines      int      // a random moment is behind one of so many lines of its output; 0: 50
}

// kills is how often TestKilled kills: usually at few of the failpoints, with
// TERRARIUM_EVERY at three times as many; TERRARIUM_KILLS requests another number.
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
		t.Fatalf("TERRARIUM_KILLS is %q, and not a number", text)
	}
	return n
}

// TestMain runs the victim of TestKilled instead of the tests when it is asked
// to.
func TestMain(m *testing.M) {
	if text := os.Getenv(victimOrder); text != "" {
		if err := victim(text); err != nil {
			tell(progress{Word: "error", Text: err.Error()})
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Programs on files take long; TERRARIUM_SEEDS or the command line may ask for
	// more of them.
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("TERRARIUM_SEEDS"), "4")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(ramdisk.Tests(m))
}

// tell prints a line. The reader does not count what is not whole.
func tell(line progress) { _ = json.NewEncoder(os.Stdout).Encode(line) }

// smallChunks has copying take many steps, in any of which it can be interrupted.
// What a process that is killed has written is there, synced or not, so nothing is.
func smallChunks(reached func(failpoint.Point, string) error) Options {
	o := WithoutSyncs
	o.hooks.Reached, o.hooks.CopyChunk, o.hooks.UniteChunk = reached, 16<<10, 20
	o.naps, o.hooks.Outgrown = fewAwake, 48<<10
	return o
}

// fewAwake has stores fall asleep and wake up all the time.
var fewAwake = naps{most: 1, first: time.Millisecond}

// copying has cuts copy small histories in every second program. The background then
// copies less, so this excludes programs that are to end in one of its steps.
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
	losevfs.Mount(o.Dir, 0) // so that SQLite syncs nothing either
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

// TestKilled kills a process again and again: at every failpoint, and at random
// moments, while it appends, cuts, creates, retires and copies. The next process
// continues in the same directory, by itself. Whatever had been acknowledged is in
// every session that descends from where it was written, once, in order and
// together with its rows; lineages are right; nothing is left over.
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

// targets are n failpoints to die at: every second one, every one, and so on, and
// random moments (failpoints) between them. A directory is brought up to date only
// once, so a session of kills begins with a point of that.
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
	// rebuilds are the points of what happens when the catalogue is lost, and only
	// then; see TestKilledWhileRebuilding.
	rebuilds = []failpoint.Point{failpoint.Remaking, failpoint.Rewriting, failpoint.Remade, failpoint.SettingAside, failpoint.SetAside, failpoint.Installing, failpoint.Installed}
	// losses are those of what happens when the power has taken a part of a cut; see
	// TestLooseCut.
	losses = []failpoint.Point{failpoint.TakingBack, failpoint.TakenBack}
	// looses are those of making a cut durable that was not, which those of the
	// durability full are at once.
	looses = []failpoint.Point{failpoint.Loose, failpoint.Firming, failpoint.Firm}
)

// isApart reports whether a point is not one of what a directory does all by itself,
// and as long as there is power.
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

// kill lets a process live until it dies at the point, and checks what it leaves.
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

// runVictim runs a process until it dies: at the order's point or, without one, soon
// after some line of its output.
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
	stuck := time.AfterFunc(mostOfALife, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // it tells where
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
	_ = cmd.Wait() // it was killed, which Wait calls an error
}

func (k *killer) listen(text []byte) {
	k.t.Helper()
	var line progress
	if json.Unmarshal(text, &line) != nil {
		return // half a line acknowledges nothing
	}
	if line.Word == "end" { // without having passed the point so often
		k.died = failpoint.Count
	}
	if err := k.reports.take(line); err != nil {
		k.t.Error(err)
	}
}

// oldDirectory makes a directory of the version before, with an empty session.
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
