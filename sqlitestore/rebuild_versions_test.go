package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// addedKeys are the keys of the table store that a version has added.
var addedKeys = map[int][]string{
	2: {"kind", "incomplete", "pruned"},
	3: {"siblings", "retired", "moved"},
	5: {"based"},
	6: {storefile.Home},
}

// age turns a store of the newest version into one of an older version: a file made by the
// migrations of that version, with the rows that it can have.
func age(t *testing.T, path string, version int) {
	t.Helper()
	if version == int(storefile.Schema.Version) {
		return
	}
	aged := filepath.Join(t.TempDir(), "aged.db")
	c, err := sqlite.Open(aged, sqlite.Create)
	if err != nil {
		t.Fatal(err)
	}
	mode := "delete"
	if err := queryValue(path, "PRAGMA journal_mode", &mode); err != nil {
		t.Fatal(err)
	}
	steps := []string{"PRAGMA journal_mode = " + mode, "ATTACH " + sqlText(path) + " AS newest"}
	if err := storefile.Schema.Raise(t.Context(), c, int64(version)); err != nil {
		t.Fatal(err)
	}
	there, err := c.ReadLayout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range there {
		if o.Kind != "table" || name == "schema_migration" || strings.HasPrefix(name, "sqlite_") {
			continue
		}
		var columns []string
		if err := c.Query("SELECT name FROM pragma_table_info(?)", []driver.Value{name}, func(v []driver.Value) error {
			columns = append(columns, sqlite.TextIn(v[0]))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(columns, ", ")
		steps = append(steps, fmt.Sprintf("DELETE FROM main.%[1]s; INSERT INTO main.%[1]s (%[2]s) SELECT %[2]s FROM newest.%[1]s", name, all))
	}
	for added, keys := range addedKeys {
		for _, key := range keys {
			if added > version {
				steps = append(steps, "DELETE FROM main.store WHERE key = "+sqlText(key))
			}
		}
	}
	for _, step := range append(steps, "DETACH newest") {
		if err := c.Exec(step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	if err := errors.Join(c.Close(), removeLogs([]string{path}), os.Rename(aged, path)); err != nil {
		t.Fatal(err)
	}
}

// sqlText writes a text as an SQL literal.
func sqlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// queryValue reads the only value that a query returns.
func queryValue(path, query string, to *string) (err error) {
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Query(query, nil, func(v []driver.Value) error { return sqlite.TakeRow(v, to) })
}

// ageAll turns the stores of a directory into those of an older version.
func ageAll(t *testing.T, dir string, version int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, files.Stores, "*"+files.StoreSuffix))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		age(t, path, version)
		if got, err := storefile.Schema.Age(t.Context(), path, sqlite.ReadOnly); err != nil || got != int64(version) {
			t.Fatalf("%s has the version %d, %v", path, got, err)
		}
	}
	if err := removeLogs(paths); err != nil {
		t.Fatal(err)
	}
}

// removeLogs removes what readers of unused databases have left beside them.
func removeLogs(paths []string) error {
	for _, path := range paths {
		if err := queryValue(path, "SELECT name FROM sqlite_schema LIMIT 1", new(string)); err != nil {
			return err
		}
	}
	return nil
}

// handedOn makes a closed directory after a split and a merge, in which no file has been
// removed. If complete is true, every live session has its whole history, and each file has the
// name of its session, as in directories of the first version.
func handedOn(t *testing.T, complete bool) string {
	t.Helper()
	held := failpoint.Stripping
	if complete {
		held = failpoint.Releasing
	}
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{SmallEvents: -1, Reached: func(point failpoint.Point, _ string) error {
		if point == held {
			return errDisk
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	first, second := createStore(t, d), createStore(t, d)
	chatter(first, "c", 1, 5, 5)
	second.Append(whole(second.Origin(), 0, 5, 10))
	settleOrNot(t, d)
	children := splitStore(t, d, first)
	for _, s := range children {
		s.Append(whole(s.Origin(), 1, 5, 10))
	}
	settleOrNot(t, d)
	merged, err := d.Cut(t.Context(), journal.Cut{
		Kind: "merge", At: 9, Parents: []journal.Store{children[1], second},
		Children: []journal.CutChild{{
			Parents:   []journal.SessionID{children[1].info.Session, second.info.Session},
			StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Full, Born: 3, First: func(o journal.Origin) *journal.Record { return whole(o, 0, 1, 10) }},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	merged[0].Append(whole(merged[0].Origin(), 1, 3, 10))
	settleOrNot(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if complete {
		nameBySession(t, d.dir)
	}
	return d.dir
}

// settleOrNot waits until the background has done what it may do.
func settleOrNot(t *testing.T, d *Directory) {
	t.Helper()
	if err := d.Settle(t.Context()); err != nil && t.Context().Err() != nil {
		t.Fatal(err)
	}
}

// nameBySession gives every file the name of its session.
func nameBySession(t *testing.T, dir string) {
	t.Helper()
	for _, e := range entriesOf(t, dir) {
		if err := os.Rename(e.Path, filepath.Join(dir, files.Stores, string(e.Session)+files.StoreSuffix)); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, filepath.Join(dir, catalog.Name), "UPDATE store SET file = session || '.db'; DELETE FROM leftover; DELETE FROM hydration")
}

// TestRebuildOlderVersions rebuilds the catalogue of stores of older versions. As long as no
// file has been removed, the catalogue is the same as before, and so are the histories once the
// stores have been upgraded.
func TestRebuildOlderVersions(t *testing.T) {
	seeded.Long(t)
	for version := 1; version <= int(storefile.Schema.Version); version++ {
		if !seeded.Part(version-1, 3) {
			continue
		}
		t.Run(fmt.Sprint("version=", version), func(t *testing.T) {
			before := handedOn(t, version == 1) // that version had no other directories
			dir := duplicate(t, before)
			ageAll(t, dir, version)
			loseCatalog(t, dir)
			report, err := Rebuild(t.Context(), dir)
			if err != nil || len(report.Live) != 2 || len(report.Sessions) != 5 || len(report.Unreadable)+len(report.Aside)+len(report.Missing)+len(report.Unknown) > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			bringUpToDate(t, dir)
			for _, d := range differences(t, before, dir) {
				t.Error(d)
			}
			goOn(t, dir, report.Live)
		})
	}
}

// TestRebuildOlderVersionsWithoutFiles removes files whose content the second version did not
// record. The live sessions have everything, lineages are complete, and histories that are
// unknown are reported as unknown.
func TestRebuildOlderVersionsWithoutFiles(t *testing.T) {
	before := lineaged(t)
	dir := duplicate(t, before)
	ageAll(t, dir, 2)
	loseCatalog(t, dir)
	report, err := Rebuild(t.Context(), dir)
	if err != nil || len(report.Unknown) == 0 || len(report.Unknown) != len(report.Sessions)-len(report.Live) {
		t.Fatalf("%+v, %v", report, err)
	}
	bringUpToDate(t, dir)
	old, fresh := entriesOf(t, before), entriesOf(t, dir)
	for session, e := range old {
		now := fresh[session]
		if now.MadeBy != e.MadeBy || now.Live != e.Live || now.MergedAt != e.MergedAt || now.SplitAt != e.SplitAt || !slices.Equal(now.Parents, e.Parents) {
			t.Errorf("%s was %+v, but is %+v", session, e, now)
		}
	}
	was, is := mustView(t, before), mustView(t, dir)
	for _, session := range report.Live {
		if answerOf(t, was, session) != answerOf(t, is, session) {
			t.Errorf("%s reads differently", session)
		}
	}
	goOn(t, dir, report.Live)
}

// bringUpToDate lets a process that owns a directory read all of it.
func bringUpToDate(t *testing.T, dir string) {
	t.Helper()
	d := mustOpen(t, dir)
	if _, err := d.Sessions(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// goOn lets sessions continue, in the end with their whole history.
func goOn(t *testing.T, dir string, live []journal.SessionID) {
	t.Helper()
	d := mustOpen(t, dir)
	defer d.Close()
	for _, session := range live {
		s, err := d.Open(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		s.Append(whole(s.Origin(), 0, 3, 10))
	}
	settle(t, d)
	for _, session := range live {
		wantSound(t, d, session)
	}
}
