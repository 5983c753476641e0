package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
	"golang.org/x/tools/txtar"
)

// asLeft makes the session directory that a version of terrarium has left; see testdata/stores.
func asLeft(t *testing.T, version int) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "testdata", "stores", fmt.Sprintf("v%d.txtar", version)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, files.Stores), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		execute(t, filepath.Join(dir, f.Name), "PRAGMA journal_mode = WAL;"+string(f.Data))
	}
	return dir
}

// TestUpgradedAtOnce opens an older store for reading and for writing at the same time.
func TestUpgradedAtOnce(t *testing.T) {
	left := asLeft(t, int(storefile.Schema.Version)-1)
	stores, err := filepath.Glob(filepath.Join(left, files.Stores, "*.db"))
	if err != nil || len(stores) == 0 {
		t.Fatal(stores, err)
	}
	for range 10 {
		path := filepath.Join(duplicate(t, left), files.Stores, filepath.Base(stores[0]))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := storefile.Schema.Upgrade(t.Context(), path, failpoint.Hooks{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if originals, err := filepath.Glob(path + ".v*"); err != nil || len(originals) != 1 {
			t.Errorf("the originals are %q, %v", originals, err)
		}
	}
}

// TestMigrationIsOneTransaction lets the last of several migrations fail. The file is then
// unchanged, and not of a version in between. Otherwise the next attempt would keep an original
// of that version.
func TestMigrationIsOneTransaction(t *testing.T) {
	step := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("" + text + ";\n")}
	}
	files := fstest.MapFS{"00001_a.sql": step("PRAGMA user_version = 1; CREATE TABLE a (x)")}
	content, err := sqlite.NewSchema("a file", 0, 1, files, nil).Template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	before := contentOf(t, path)
	files["00002_b.sql"], files["00003_c.sql"] = step("PRAGMA user_version = 2; CREATE TABLE b (x)"), step("CREATE TABLE a (x)")
	err = sqlite.NewSchema("a file", 0, 3, files, nil).Upgrade(t.Context(), path, failpoint.Hooks{})
	if err == nil || !strings.Contains(err.Error(), "from version 1 to 3") {
		t.Errorf("Upgrade: %v", err)
	}
	if after := contentOf(t, path); after != before {
		t.Errorf("the file was %s\nbut is %s", before, after)
	}
	files["00003_c.sql"] = step("PRAGMA user_version = 3; CREATE TABLE c (x)")
	if err := sqlite.NewSchema("a file", 0, 3, files, nil).Upgrade(t.Context(), path, failpoint.Hooks{}); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(path + ".v*")
	if err != nil || len(kept) != 1 || contentOf(t, kept[0]) != before {
		t.Errorf("the originals are %v, %v", kept, err)
	}
}

// migrationKills is how often the upgrade of one directory is killed before it may reach its
// end.
const migrationKills = 3

// TestKilledMigrating kills a process while it upgrades the files of an older version, for
// reading or for writing: at every step, between them, and several times in a row. The next
// process does the rest, with the same result as without the kills. There is one original of
// each file, unchanged, and nothing else is left over.
func TestKilledMigrating(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	oldest := 1 + random.IntN(int(storefile.Schema.Version)-1)
	for todo := errandKills(t); todo > 0; todo -= migrationKills {
		t.Run(fmt.Sprint("v", oldest), func(t *testing.T) { killMigrating(t, oldest, random) })
		oldest = 1 + oldest%(int(storefile.Schema.Version)-1)
	}
}

func killMigrating(t *testing.T, version int, random *rand.Rand) {
	left := asLeft(t, version)
	sound := duplicate(t, left)
	if err := Upgrade(t.Context(), sound); err != nil {
		t.Fatal(err)
	}
	want := migration{left: left, answers: answersOf(t, sound), entries: entriesOf(t, sound), histories: historiesOf(t, sound)}
	dir := duplicate(t, left)
	points := append(slices.Clone(upgrades), failpoint.Count)
	first := random.IntN(len(points))
	for i := range migrationKills {
		o := order{Dir: dir, Point: points[(first+i)%len(points)], Pass: 1 + random.Int32N(3), Lines: 6}
		a := &errand{Word: []string{"upgrade", "open"}[random.IntN(2)]}
		_, done := a.sendOff(t, o, random)
		wantOriginals(t, dir, left)
		next := duplicate(t, dir)
		if err := Upgrade(t.Context(), next); err != nil {
			t.Fatalf("after %s, pass %d, no process can continue: %v", pointName(o.Point), o.Pass, err)
		}
		want.check(t, next)
		if done {
			break
		}
	}
	if err := Upgrade(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	want.check(t, dir)
}

// migration is a directory of an older version, and its content after an upgrade without
// interruption.
type migration struct {
	left      string // the directory
	answers   map[journal.SessionID]string
	entries   map[journal.SessionID]catalog.Entry
	histories map[journal.SessionID]string
}

func historiesOf(t *testing.T, dir string) map[journal.SessionID]string {
	t.Helper()
	v, out := mustView(t, dir), map[journal.SessionID]string{}
	for session := range entriesOf(t, dir) {
		out[session] = fmt.Sprint(history(t, v, session))
	}
	return out
}

// check checks a directory after the upgrade. A process that has opened it for writing may have
// given sessions their whole files, and removed the files of ended sessions.
func (m *migration) check(t *testing.T, dir string) {
	t.Helper()
	got, histories := answersOf(t, dir), historiesOf(t, dir)
	for session, e := range m.entries {
		if e.Live && got[session] != m.answers[session] {
			t.Errorf("session %s has %.800s\nwant %.800s", session, got[session], m.answers[session])
		}
		if histories[session] != m.histories[session] {
			t.Errorf("%s has the history %.800s\nwant %.800s", session, histories[session], m.histories[session])
		}
	}
	if len(got) != len(m.entries) {
		t.Errorf("there are %d sessions, want %d", len(got), len(m.entries))
	}
	wantTidy(t, dir)
	wantOriginals(t, dir, m.left)
	m.checkOriginals(t, dir)
}

// checkOriginals checks that there is one original of each file of a session.
func (m *migration) checkOriginals(t *testing.T, dir string) {
	t.Helper()
	var files []string // files with originals
	for _, path := range originalsIn(t, dir) {
		files = append(files, strings.TrimSuffix(path, filepath.Ext(path)))
	}
	for session, e := range entriesOf(t, dir) {
		if e.File != "" && e.File == m.entries[session].File && !slices.Contains(files, e.Path) {
			t.Errorf("there is no original of %s", e.Path)
		}
	}
	if slices.Sort(files); len(slices.Compact(slices.Clone(files))) != len(files) {
		t.Errorf("there are several originals of one file: %v", files)
	}
}

// wantOriginals checks that every file with the name of an original has the content that the
// older version left.
func wantOriginals(t *testing.T, dir, left string) {
	t.Helper()
	for _, path := range originalsIn(t, dir) {
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		was := contentOf(t, filepath.Join(left, strings.TrimSuffix(inside, filepath.Ext(inside))))
		if contentOf(t, path) != was {
			t.Errorf("the original %s was changed", path)
		}
	}
}

// contentOf returns the whole content of a database.
func contentOf(t *testing.T, path string) string {
	t.Helper()
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	mode, err := visitor.Visit(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.Open(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	version, _, err := c.Integer("PRAGMA user_version")
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprint(version)
	for _, table := range tablesOf(t, c) {
		out += "\n" + table
		err := c.Query(`SELECT * FROM "`+table+`" ORDER BY 1`, nil, func(v []driver.Value) error {
			out += fmt.Sprintf("\n%q", v)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func tablesOf(t *testing.T, c *sqlite.Conn) (names []string) {
	t.Helper()
	err := c.Query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name", nil, func(v []driver.Value) error {
		names = append(names, sqlite.TextIn(v[0]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
