package sqlitestore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// lineaged makes a closed directory whose stores were cut several times and are complete, so
// that the files of ended sessions are removed.
func lineaged(t *testing.T) string {
	t.Helper()
	p := newPowerProgram(t, journal.Normal, 1)
	if err := p.openPlain(t); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, s := range p.stores {
			logged(s, s.Durable()+1, s.Durable()+5)
			if err := s.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.ledger[s.Origin()].appended = s.Durable()
		}
		if err := p.cut(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.d.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.d.Close(); err != nil {
		t.Fatal(err)
	}
	return p.dir
}

// openPlain opens the directory of a program on a disk without faults.
func (p *powerProgram) openPlain(t *testing.T) (err error) {
	t.Helper()
	p.d = mustOpen(t, p.dir)
	return p.create(1)
}

func TestRebuildSettled(t *testing.T) {
	dir := lineaged(t)
	before := duplicate(t, dir)
	loseCatalog(t, dir)
	report, err := Rebuild(t.Context(), dir)
	if err != nil || len(report.Live) == 0 || len(report.Sessions) <= len(report.Live) || len(report.Unreadable)+len(report.Aside)+len(report.Missing)+len(report.Unknown) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, d := range differences(t, before, dir) {
		t.Error(d)
	}
}

// TestRebuildComparesEverything removes or alters records of the stores, one kind at a time. Each
// of these must make a difference: otherwise the loss would not be noticed.
func TestRebuildComparesEverything(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	dir := lineaged(t)
	for _, sabotage := range []string{
		"DELETE FROM wrote",
		"DELETE FROM ancestor",
		"UPDATE ancestor SET parent = NULL",
		"UPDATE ancestor SET cut = 'other' WHERE parent IS NOT NULL",
		"UPDATE ancestor SET born = 77",
		"UPDATE ancestor SET durability = 'full'",
		"UPDATE ancestor SET created = created + 1",
		"UPDATE store SET value = 'x' WHERE key = 'graph'",
		"INSERT INTO store VALUES ('retired', '1')",
		"INSERT INTO store VALUES ('incomplete', '1')",
		"DELETE FROM store WHERE key = 'session'",
		"DELETE FROM event WHERE id & 0xffffffffff = 4",
	} {
		t.Run(sabotage, func(t *testing.T) {
			damaged := duplicate(t, dir)
			loseCatalog(t, damaged)
			paths, err := filepath.Glob(filepath.Join(damaged, files.Stores, "*"+files.StoreSuffix))
			if err != nil || len(paths) == 0 {
				t.Fatal(paths, err)
			}
			for _, path := range paths {
				execute(t, path, sabotage)
			}
			if _, err := Rebuild(t.Context(), damaged); err != nil {
				t.Fatal(err)
			}
			if len(differences(t, dir, damaged)) == 0 {
				t.Error("the comparison does not notice the damage")
			}
		})
	}
}

// TestRebuildRefuses tries directories that must not be changed.
func TestRebuildRefuses(t *testing.T) {
	dir, paths := filled(t, 1)
	catalog := filepath.Join(dir, catalog.Name)
	content, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Rebuild(t.Context(), dir)
	wantError(t, "rebuilding a sound catalogue", err, abi.Conflict, catalog)
	unchanged(t, catalog, content)
	_, err = Rebuild(t.Context(), t.TempDir())
	wantError(t, "rebuilding an empty directory", err, abi.NotFound)

	d := mustOpen(t, dir)
	_, err = Rebuild(t.Context(), dir)
	wantError(t, "rebuilding a directory in use", err, abi.Unavailable, "process "+strconv.Itoa(os.Getpid()))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(catalog); err != nil {
		t.Fatal(err)
	}
	execute(t, catalog, "CREATE TABLE x (x); PRAGMA application_id = 0x54455243; PRAGMA user_version = 99")
	_, err = Rebuild(t.Context(), dir)
	wantError(t, "rebuilding what a newer program wrote", err, abi.Unsupported, "version 99")
	if _, err := os.Stat(paths[0]); err != nil {
		t.Error(err)
	}
}

// TestRebuildDamaged damages the catalogue in several ways, one after the other. The damaged
// catalogue is kept each time, and its log with it.
func TestRebuildDamaged(t *testing.T) {
	dir, paths := filled(t, 2)
	catalog := filepath.Join(dir, catalog.Name)
	sound, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	half := bytes.Clone(sound)
	for i := 4096; i < len(half); i++ {
		half[i] = byte(i)
	}
	stores := contents(t, paths)
	for n, content := range [][]byte{nil, []byte("rubble"), sound[:len(sound)/2], half} {
		for suffix, content := range map[string][]byte{"": content, "-wal": []byte("a log")} {
			if err := os.WriteFile(catalog+suffix, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := Rebuild(t.Context(), dir)
		if err != nil || len(report.Live) != 2 {
			t.Fatalf("damage %d: %+v, %v", n, report, err)
		}
		unchanged(t, report.Kept, content)
		if len(content) > 0 { // SQLite removes the log of an empty file
			unchanged(t, report.Kept+"-wal", []byte("a log"))
		}
		if got := contents(t, paths); !slices.EqualFunc(got, stores, bytes.Equal) {
			t.Error("the stores were changed")
		}
	}
	d := mustOpen(t, dir)
	defer d.Close()
	if graphs, problems, err := d.Saved(t.Context()); err != nil || len(graphs) != 2 || len(problems) > 0 {
		t.Errorf("Saved: %+v, %v, %v", graphs, problems, err)
	}
}

func contents(t *testing.T, paths []string) (out [][]byte) {
	t.Helper()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, content)
	}
	return out
}

// TestRebuildReports has files that cannot be read, files that are not needed, and missing
// files.
func TestRebuildReports(t *testing.T) {
	d := heldBack(t)
	parent := createStore(t, d)
	logged(parent, 1, 5)
	children := splitStore(t, d, parent)
	for _, s := range children {
		logged(s, 2, 6)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	loseCatalog(t, d.dir)
	stores := filepath.Join(d.dir, files.Stores)
	replace(t, filepath.Join(stores, "copy.db"), children[0].path())
	if err := os.WriteFile(filepath.Join(stores, "strange.db"), []byte("rubble"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []*Store{parent, children[1]} {
		if err := sqlite.Remove(failpoint.Hooks{}, lost.path()); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Rebuild(t.Context(), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.SessionID{parent.info.Session, children[1].info.Session}
	slices.Sort(want)
	if !slices.Equal(report.Live, []journal.SessionID{children[0].info.Session}) || !slices.Equal(report.Missing, want) ||
		!slices.Equal(report.Aside, []string{filepath.Join(stores, "copy.db")}) {
		t.Errorf("%+v, want %v to be missing", report, want)
	}
	if !slices.ContainsFunc(report.Unreadable, func(f rebuild.FileProblem) bool {
		return f.Path == filepath.Join(stores, "strange.db") && abi.CodeOf(f.Err) == abi.Storage
	}) {
		t.Errorf("unreadable: %+v", report.Unreadable)
	}
	v := mustView(t, d.dir)
	found, err := v.Verify(t.Context(), children[0].info.Session)
	if err != nil || !strings.Contains(strings.Join(found.Damage, "\n"), string(parent.info.Session)) {
		t.Errorf("Verify: %+v, %v", found, err)
	}
	_, err = v.History(t.Context(), parent.info.Session, journal.HistoryQuery{})
	wantError(t, "the history of the session that is missing", err, abi.Storage, parent.path())
}

// TestRebuildUnknown loses the records of what ended sessions wrote, which files of an older
// version do not have. The report says that their histories are unknown.
func TestRebuildUnknown(t *testing.T) {
	dir := lineaged(t)
	paths, err := filepath.Glob(filepath.Join(dir, files.Stores, "*"+files.StoreSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		execute(t, path, "DELETE FROM wrote")
	}
	loseCatalog(t, dir)
	report, err := Rebuild(t.Context(), dir)
	if err != nil || len(report.Unknown) == 0 || len(report.Unknown) != len(report.Sessions)-len(report.Live) {
		t.Fatalf("%+v, %v", report, err)
	}
	v := mustView(t, dir)
	for _, session := range report.Unknown {
		_, err := v.History(t.Context(), session, journal.HistoryQuery{})
		wantError(t, "its history", err, abi.NotFound, string(session), "no longer known")
	}
	for _, session := range report.Live {
		if found, err := v.Verify(t.Context(), session); err != nil || len(found.Missing)+len(found.Damage) > 0 || found.Events == 0 {
			t.Errorf("Verify: %+v, %v", found, err)
		}
	}
}

// heldBack opens a directory in which no history is copied.
func heldBack(t *testing.T) *Directory {
	t.Helper()
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{SmallEvents: -1, Reached: func(point failpoint.Point, _ string) error {
		if point == failpoint.Stripping {
			return errDisk
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func splitStore(t *testing.T, d *Directory, parent *Store) (out []*Store) {
	t.Helper()
	cut := journal.Cut{Kind: "split", At: 7, Parents: []journal.Store{parent}}
	for range 2 {
		cut.Children = append(cut.Children, journal.CutChild{
			Parents:   []journal.SessionID{parent.info.Session},
			StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(o journal.Origin) *journal.Record { return whole(o, 0, 1, 10) }},
		})
	}
	made, err := d.Cut(t.Context(), cut)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range made {
		out = append(out, s.(*Store))
	}
	return out
}
