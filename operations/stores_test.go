package operations

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
	"golang.org/x/tools/txtar"
)

// asLeft makes a session directory as a version of terrarium has left it: see
// testdata/stores.
func asLeft(t *testing.T, version int) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "testdata", "stores", fmt.Sprintf("v%d.txtar", version)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "stores"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		run(t, filepath.Join(dir, f.Name), "PRAGMA journal_mode = WAL", string(f.Data))
	}
	return dir
}

// run executes statements on a database.
func run(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := sqlitetest.Open(t, path)
	db.SetMaxOpenConns(1)
	var err error
	for _, s := range statements {
		if _, execErr := db.Exec(s); execErr != nil {
			err = fmt.Errorf("%s: %w", path, execErr)
			break
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// numberIn returns the result of a query for one number.
func numberIn(t *testing.T, path, query string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(column(t, path, query)[0], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// newestStore is the version of the stores that this program writes.
func newestStore(t *testing.T) int {
	t.Helper()
	stores, _ := newest(t)
	return stores
}

// newest holds the versions of the stores and of the catalogue that this program writes.
func newest(t *testing.T) (stores, catalogue int) {
	t.Helper()
	dir := t.TempDir()
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	act(t, tr, "add_creature", map[string]any{"name": "a", "module": "builtin:echo"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "stores", "*.db"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return numberIn(t, paths[0], "PRAGMA user_version"), numberIn(t, filepath.Join(dir, "catalog.db"), "PRAGMA user_version")
}

// TestEveryVersionOpens opens stores of each version: creatures resume with their state, no
// history is lost, and the graph merges with a new one. A version without such a store
// fails, so that none is forgotten.
func TestEveryVersionOpens(t *testing.T) {
	newest := newestStore(t)
	for version := 1; version <= newest; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			dir := asLeft(t, version)
			logged := storedEvents(t, dir)
			tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close(context.WithoutCancel(t.Context()))
			if _, problems, err := tr.Restore(t.Context()); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "alarm.wasm") {
				t.Fatalf("problems %v, %v", problems, err)
			}
			wantHeld(t, tr, version)
			wantAll(t, tr, logged)
			goOnWithNew(t, tr)
			wantOriginals(t, dir, version, newest)
		})
	}
}

// TestUpgradeThenRead migrates directories of each version for a reader, which can then
// read all files of the directory and plan to resume it. Migrating again changes nothing,
// and works while another process uses the directory.
func TestUpgradeThenRead(t *testing.T) {
	newest := newestStore(t)
	for version := 1; version <= newest; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			dir := asLeft(t, version)
			if err := sqlitestore.Upgrade(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			wantReadable(t, dir)
			tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close(context.WithoutCancel(t.Context()))
			if err := sqlitestore.Upgrade(t.Context(), dir); err != nil {
				t.Fatal("in use, and up to date:", err)
			}
		})
	}
}

// wantReadable reads every session, and plans.
func wantReadable(t *testing.T, dir string) {
	t.Helper()
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	list, err := v.Catalogue(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for i := range list {
		if _, err := v.History(t.Context(), list[i].Session, journal.HistoryQuery{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := terrarium.PlanDirectory(t.Context(), v, nil)
	if err != nil || len(plan.Creatures) != 6 || len(plan.Problems) != 1 || !strings.Contains(plan.Problems[0].Error(), "alarm.wasm") {
		t.Fatalf("plan %+v, %v", plan, err)
	}
}

// act runs one operation.
func act(t *testing.T, tr *terrarium.Terrarium, op string, args map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, tr, op, string(text))
}

// storedEvents returns the ids of all events in the stores of a directory.
func storedEvents(t *testing.T, dir string) (ids []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "stores", "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		ids = append(ids, column(t, path, "SELECT id FROM events")...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// wantHeld checks what creatures had when the store was left.
func wantHeld(t *testing.T, tr *terrarium.Terrarium, version int) {
	t.Helper()
	for creature, want := range map[string]string{"fish": "3", "fruit": "2"} {
		if got := totalOf(t, tr, creature); got != want {
			t.Errorf("%s has the total %v, want %s", creature, got, want)
		}
	}
	timers := timersOf(t, tr, "egg")
	due := pendingOf(t, tr, "egg")
	if left := timersOf(t, tr, "egg"); len(left) < len(timers) { // it was due in between
		timers, due = left, pendingOf(t, tr, "egg")
	}
	if len(timers)+due != 1 { // the timer is due an hour after the store was left
		t.Errorf("egg has the timers %v, and %d deliveries wait", timers, due)
	}
	if letters := act(t, tr, "dead_letters", map[string]any{"graph": "slow"})["dead_letters"].([]any); len(letters) != 1 {
		t.Errorf("slow has the dead letters %v", letters)
	}
	if wires := act(t, tr, "wires", map[string]any{"graph": "fish"})["wires"].([]any); len(wires) != min(1, max(0, version-3)) {
		t.Errorf("fish has the wires %v", wires)
	}
}

// timersOf returns the timers of a creature.
func timersOf(t *testing.T, tr *terrarium.Terrarium, creature string) []any {
	t.Helper()
	return act(t, tr, "timers", map[string]any{"creature": creature})["timers"].([]any)
}

// pendingOf returns how many deliveries wait for a creature.
func pendingOf(t *testing.T, tr *terrarium.Terrarium, creature string) (n int) {
	t.Helper()
	graphs, err := tr.Status("")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			for _, at := range c.Cursors {
				if c.Name == creature {
					n += int(at.Pending)
				}
			}
		}
	}
	return n
}

// totalOf returns how much a tally has counted.
func totalOf(t *testing.T, tr *terrarium.Terrarium, creature string) any {
	t.Helper()
	return act(t, tr, "state", map[string]any{"creature": creature, "prefix": "total"})["state"].(map[string]any)["total"]
}

// wantAll checks that the histories have every earlier event, and are sound.
func wantAll(t *testing.T, tr *terrarium.Terrarium, logged []string) {
	t.Helper()
	sessions, err := tr.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range sessions {
		report, err := tr.Verify(t.Context(), string(s.Session))
		if err != nil || len(report.Missing)+len(report.Duplicate)+len(report.OutOfOrder)+len(report.Damage) > 0 {
			t.Errorf("session %s: %+v, %v", s.Session, report, err)
		}
		events, err := tr.History(t.Context(), string(s.Session), journal.HistoryQuery{Limit: 1_000_000})
		if err != nil {
			t.Error(err)
		}
		for i := range events {
			found[events[i].ID.String()] = true
		}
	}
	for _, id := range logged {
		if !found[id] {
			t.Errorf("the event %s is in no history", id)
		}
	}
}

// goOnWithNew merges an old graph with a new one, and exports and forks the resulting
// session.
func goOnWithNew(t *testing.T, tr *terrarium.Terrarium) {
	t.Helper()
	act(t, tr, "add_creature", map[string]any{"name": "cook", "module": "builtin:tally"})
	act(t, tr, "connect", map[string]any{"from": "fisher", "to": "cook", "channel": "dish"})
	act(t, tr, "send_to", map[string]any{"creature": "fisher", "payload": "tench"})
	act(t, tr, "wait_idle", map[string]any{"timeout": "60s"})
	if got := totalOf(t, tr, "fish"); got != "4" {
		t.Errorf("fish did not go on: it has the total %v", got)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	act(t, tr, "export", map[string]any{"graph": "fish", "path": path})
	if got := column(t, path, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("the exported file is not whole: %v", got)
	}
	act(t, tr, "fork", map[string]any{"graph": "fish", "dir": filepath.Join(t.TempDir(), "fork")})
}

// wantOriginals checks that the original of each migrated file has been kept.
func wantOriginals(t *testing.T, dir string, version, newest int) {
	t.Helper()
	originals, err := filepath.Glob(filepath.Join(dir, "stores", fmt.Sprintf("*.db.v%d", version)))
	if err != nil || (len(originals) > 0) != (version < newest) {
		t.Errorf("originals %v, %v", originals, err)
	}
	for _, path := range originals {
		if got := numberIn(t, path, "PRAGMA user_version"); got != version {
			t.Errorf("%s has the version %d", path, got)
		}
	}
	for catalogue, written := range map[int]bool{1: version == 1, 2: version > 1 && version < 6} { // versions 2 to 5 have this catalogue
		if kept := isThere(filepath.Join(dir, fmt.Sprintf("catalog.db.v%d", catalogue))); kept != written {
			t.Errorf("the original of the catalogue of version %d is there: %v", catalogue, kept)
		}
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestNewerIsRefused opens a catalogue and a store that a newer program has written.
// Both versions are named, and nothing is changed.
func TestNewerIsRefused(t *testing.T) {
	newest, newestCatalogue := newest(t)
	dir := asLeft(t, newest)
	catalogue := filepath.Join(dir, "catalog.db")
	was := numberIn(t, catalogue, "PRAGMA user_version")
	run(t, catalogue, "PRAGMA user_version = 99")
	before := contents(t, dir)
	_, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if abi.CodeOf(err) != abi.Unsupported || !strings.Contains(err.Error(), "has version 99, and this program reads versions up to "+fmt.Sprint(newestCatalogue)) {
		t.Errorf("New: %v", err)
	}
	_, err = sqlitestore.OpenReadOnly(t.Context(), dir)
	if abi.CodeOf(err) != abi.Unsupported || !strings.Contains(err.Error(), "99") {
		t.Errorf("OpenReadOnly: %v", err)
	}
	if after := contents(t, dir); after != before {
		t.Errorf("the directory was\n%s\nand is\n%s", before, after)
	}
	run(t, catalogue, "PRAGMA user_version = "+fmt.Sprint(was))
	for _, file := range column(t, catalogue, "SELECT file FROM sessions WHERE live") {
		run(t, filepath.Join(dir, "stores", file), "PRAGMA user_version = 98")
	}
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(context.WithoutCancel(t.Context()))
	problems := fmt.Sprint(tr.Problems())
	if !strings.Contains(problems, "has version 98, and this program reads versions up to "+fmt.Sprint(newest)) {
		t.Errorf("problems: %s", problems)
	}
}

// contents returns the databases of a directory, each with a checksum of its contents.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, f os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".db" {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", path, sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAdoptAnOldFile continues a single file of the first version in a directory of its
// own. In that version, every session was a single file.
func TestAdoptAnOldFile(t *testing.T) {
	left, held := asLeft(t, 1), 0
	for _, session := range column(t, filepath.Join(left, "catalog.db"), "SELECT session FROM sessions WHERE live") {
		file := filepath.Join(left, "stores", session+".db")
		dir := filepath.Join(t.TempDir(), "adopted")
		if err := sqlitestore.Adopt(t.Context(), file, dir); err != nil {
			t.Fatal(err)
		}
		tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		graphs, _, err := tr.Restore(t.Context())
		if err != nil || len(graphs) != 1 {
			t.Fatalf("graphs %v, %v", graphs, err)
		}
		events, err := tr.History(t.Context(), session, journal.HistoryQuery{Limit: 1_000_000})
		if logged := column(t, file, "SELECT id FROM events"); err != nil || len(logged) == 0 || len(events) < len(logged) {
			t.Errorf("its history has %d events of %d, %v", len(events), len(logged), err)
		}
		for creature, total := range map[string]string{"fish": "3", "fruit": "2"} {
			if slices.Contains(column(t, file, "SELECT name FROM creatures"), creature) {
				held++
				if got := totalOf(t, tr, creature); got != total {
					t.Errorf("%s has the total %v, want %s", creature, got, total)
				}
			}
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if version := numberIn(t, file, "PRAGMA user_version"); version != 1 {
			t.Errorf("%s has the version %d now", file, version)
		}
	}
	if held != 2 {
		t.Errorf("%d creatures that hold something are there, want 2", held)
	}
}
