package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
)

// mustOpen opens a directory in which cuts copy no history, however small it is, so that the
// background copies it.
func mustOpen(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := Open(t.Context(), dir, Options{hooks: failpoint.Hooks{SmallEvents: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filled makes a closed directory with stores of ten events each, and returns the paths of
// their files.
func filled(t *testing.T, stores int) (dir string, paths []string) {
	t.Helper()
	d := mustOpen(t, t.TempDir())
	for range stores {
		s := createStore(t, d)
		logged(s, 1, 10)
		paths = append(paths, s.path())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.dir, paths
}

func wantError(t *testing.T, what string, err error, code abi.Code, texts ...string) {
	t.Helper()
	if abi.CodeOf(err) != code {
		t.Errorf("%s: %v; want the code %s", what, err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want an error that names %q", what, err, text)
		}
	}
}

func TestDirectoryInUse(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	_, err := Open(t.Context(), d.dir, Options{})
	wantError(t, "opening a directory twice", err, abi.Unavailable, "process "+strconv.Itoa(os.Getpid()), d.dir)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, d.dir).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNotADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, Options{})
	wantError(t, "opening a file", err, abi.InvalidArgument, path)
	_, err = OpenReadOnly(t.Context(), filepath.Dir(path))
	wantError(t, "reading a directory without a catalogue", err, abi.NotFound, filepath.Dir(path))
}

// TestForeignFiles puts other files in the places of the directory's own. They are refused, the
// error names them, and they are not changed.
func TestForeignFiles(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	execute(t, foreign, "CREATE TABLE precious (x); INSERT INTO precious VALUES (42); PRAGMA user_version = 1")
	newer := filepath.Join(t.TempDir(), "newer.db")
	execute(t, newer, "CREATE TABLE x (x); PRAGMA application_id = 0x54455253; PRAGMA user_version = 99")
	newerCatalog := filepath.Join(t.TempDir(), "catalog.db")
	execute(t, newerCatalog, "CREATE TABLE x (x); PRAGMA application_id = 0x54455243; PRAGMA user_version = 99")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database. "), 600), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, from string
		code       abi.Code
		texts      []string
		catalog    string // used as the catalogue instead
	}{
		{"OtherApplication", foreign, abi.Storage, []string{"another application"}, foreign},
		{"NotADatabase", text, abi.Storage, []string{"not a SQLite database"}, text},
		{"Newer", newer, abi.Unsupported, []string{"version 99", "up to"}, newerCatalog},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, paths := filled(t, 2)
			content := replace(t, paths[0], c.from)
			d := mustOpen(t, dir)
			graphs, problems, err := d.Saved(t.Context())
			if err != nil || len(graphs) != 1 || graphs[0].Path != paths[1] || len(problems) != 1 {
				t.Fatalf("Saved: %+v, problems %v, %v", graphs, problems, err)
			}
			wantError(t, "the problem", problems[0], c.code, append(c.texts, paths[0])...)
			session := journal.SessionID(strings.TrimSuffix(filepath.Base(paths[0]), files.StoreSuffix))
			_, err = d.Open(t.Context(), session)
			wantError(t, "opening it", err, c.code, c.texts...)
			_, err = d.History(t.Context(), session, journal.HistoryQuery{})
			wantError(t, "its history", err, c.code, c.texts...)
			if infos, err := d.Sessions(t.Context()); err != nil || len(infos) != 2 || infos[0].Events != -1 || infos[1].Events != 10 {
				t.Errorf("Sessions: %+v, %v", infos, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			unchanged(t, paths[0], content)

			catalog := filepath.Join(dir, catalog.Name)
			content = replace(t, catalog, c.catalog)
			_, err = Open(t.Context(), dir, Options{})
			wantError(t, "opening with it as a catalogue", err, c.code, append(c.texts, catalog)...)
			_, err = OpenReadOnly(t.Context(), dir)
			wantError(t, "reading with it as a catalogue", err, c.code, append(c.texts, catalog)...)
			unchanged(t, catalog, content)
		})
	}
}

// TestStrangeStores puts other stores in the place of a store: that of another session, and one
// as it is after a crash that lost its write-ahead log.
func TestStrangeStores(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(t *testing.T, paths []string)
		text string
	}{
		{"OtherSession", func(t *testing.T, paths []string) { replace(t, paths[0], paths[1]) }, "is the store of the session"},
		{"LostLog", func(t *testing.T, paths []string) {
			content, err := storefile.Schema.Template()
			if err == nil {
				err = os.WriteFile(paths[0], content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "-wal, is missing or damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, paths := filled(t, 2)
			c.put(t, paths)
			content, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			d := mustOpen(t, dir)
			graphs, problems, err := d.Saved(t.Context())
			if err != nil || len(graphs) != 1 || graphs[0].Path != paths[1] || len(problems) != 1 {
				t.Fatalf("Saved: %+v, problems %v, %v", graphs, problems, err)
			}
			wantError(t, "the problem", problems[0], abi.Storage, c.text, paths[0])
			session := journal.SessionID(strings.TrimSuffix(filepath.Base(paths[0]), files.StoreSuffix))
			_, err = d.Verify(t.Context(), session)
			wantError(t, "checking it", err, abi.Storage, c.text)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			unchanged(t, paths[0], content)
		})
	}
}

// execute runs statements on a file, which it creates if it does not exist.
func execute(t *testing.T, path, statements string) {
	t.Helper()
	db := sqlitetest.Open(t, path)
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, path, from string) []byte {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func unchanged(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s was changed; %v", path, err)
	}
}

func TestDamagedStore(t *testing.T) {
	dir, paths := filled(t, 3)
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := 200; i < len(content); i++ { // the header remains, the rest is rubble
		content[i] = byte(i)
	}
	if err := os.WriteFile(paths[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, dir)
	defer d.Close()
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(graphs) != 1 || graphs[0].Path != paths[2] || len(problems) != 2 {
		t.Fatalf("Saved: %+v, problems %v, %v", graphs, problems, err)
	}
	wantError(t, "a damaged store", problems[0], abi.Storage, paths[0], "damaged")
	wantError(t, "a missing store", problems[1], abi.Storage, paths[1], "cannot be opened")
	unchanged(t, paths[0], content)
}

// TestVerifyDamage damages a page in the middle of one file, and deletes rows of another.
func TestVerifyDamage(t *testing.T) {
	dir, paths := filled(t, 2)
	execute(t, paths[1], "DELETE FROM event WHERE id & 0xffffffffff IN (3, 7, 8); INSERT INTO message VALUES ('c', 1, 1)")
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(content, make([]byte, 900)) // within a page of events
	copy(content[at/4096*4096:], "rubble")
	if err := os.WriteFile(paths[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, dir)
	defer d.Close()
	session := func(path string) journal.SessionID {
		return journal.SessionID(strings.TrimSuffix(filepath.Base(path), files.StoreSuffix))
	}
	report, err := d.Verify(t.Context(), session(paths[0]))
	if err != nil || len(report.Damage) == 0 {
		t.Errorf("a damaged page: %+v, %v", report, err)
	}
	report, err = d.Verify(t.Context(), session(paths[1]))
	if err != nil || report.Events != 7 || len(report.Missing) != 2 || !strings.Contains(strings.Join(report.Damage, "\n"), "index of messages has 1 entries") {
		t.Errorf("deleted rows: %+v, %v", report, err)
	}
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	_, err = d.Verify(t.Context(), session(paths[0]))
	wantError(t, "a missing store", err, abi.Storage, paths[0])
}

func TestUnknownFilesAreSetAside(t *testing.T) {
	dir, paths := filled(t, 1)
	stores := filepath.Dir(paths[0])
	used := filepath.Join(stores, "copy.db")
	content := replace(t, used, paths[0])
	template, err := storefile.Schema.Template()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"unused.db": template, "half.db.new": template[:100], "notes.txt": nil, "text.db": []byte("precious")} {
		if err := os.WriteFile(filepath.Join(stores, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := mustOpen(t, dir)
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(graphs) != 1 || len(problems) != 2 {
		t.Fatalf("Saved: %+v, problems %v, %v", graphs, problems, err)
	}
	wantError(t, "a copied store", problems[0], abi.Storage, used, "copy.db.orphan")
	wantError(t, "a text", problems[1], abi.Storage, "text.db", "cannot be read")
	unchanged(t, used+files.OrphanSuffix, content)
	unchanged(t, filepath.Join(stores, "text.db"), []byte("precious")) // only until work in the directory continues
	createStore(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	unchanged(t, filepath.Join(stores, "text.db.orphan"), []byte("precious"))
	for name, want := range map[string]bool{"unused.db": false, "half.db.new": false, "notes.txt": true, "copy.db": false} {
		if _, err := os.Stat(filepath.Join(stores, name)); (err == nil) != want {
			t.Errorf("%s: %v, want that it exists: %v", name, err, want)
		}
	}
}

func TestLostCatalogue(t *testing.T) {
	dir, paths := filled(t, 1)
	if err := os.Remove(filepath.Join(dir, catalog.Name)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir, Options{})
	wantError(t, "opening without the catalogue", err, abi.Storage, catalog.Name)
	if _, err := os.Stat(paths[0]); err != nil {
		t.Error(err)
	}
}

// TestMigration opens files of an older version.
func TestMigration(t *testing.T) {
	dir, paths := filled(t, 1)
	version := storefile.Schema.Version
	migrations := fstest.MapFS{fmt.Sprintf("%05d_more.sql", version+1): {
		Data: fmt.Appendf(nil, "PRAGMA user_version = %d;\nALTER TABLE event ADD COLUMN more TEXT;\n", version+1),
	}}
	names, err := fs.Glob(storefile.Schema.Migrations, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(storefile.Schema.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		migrations[name] = &fstest.MapFile{Data: content}
	}
	ours, theirs := fmt.Sprint(version), fmt.Sprint(version+1)
	next := sqlite.NewSchema("a session store", storefile.Schema.ApplicationID, version+1, migrations, storefile.Schema.Functions)
	wantError(t, "reading an older file", requireCurrent(t, next, paths[0], sqlite.ReadOnly), abi.Unsupported, "version "+ours, "version "+theirs)
	for range 2 { // the second time, there is nothing to do
		if err := next.Upgrade(t.Context(), paths[0], failpoint.Hooks{}); err != nil {
			t.Fatal(err)
		}
		if err := requireCurrent(t, next, paths[0], sqlite.ReadWrite); err != nil {
			t.Error(err)
		}
	}
	execute(t, paths[0], "UPDATE event SET more = 'x'")
	if err := requireCurrent(t, storefile.Schema, paths[0]+".v"+ours, sqlite.ReadWrite); err != nil {
		t.Errorf("the original: %v", err)
	}
	wantError(t, "opening it with the older program", storefile.Schema.Upgrade(t.Context(), paths[0], failpoint.Hooks{}), abi.Unsupported, "version "+theirs, "up to "+ours)
	d := mustOpen(t, dir)
	defer d.Close()
	if _, problems, err := d.Saved(t.Context()); err != nil || len(problems) != 1 {
		t.Errorf("problems %v, %v", problems, err)
	}
}

// TestView reads a directory while a process owns it, and afterwards.
func TestView(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	v, err := OpenReadOnly(t.Context(), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	check := func(n int) {
		t.Helper()
		events, err := v.History(t.Context(), s.info.Session, journal.HistoryQuery{Newest: true})
		wantSeqs(t, events, err, n)
		infos, err := v.Sessions(t.Context())
		if err != nil || len(infos) != 1 || infos[0].Events != int64(n) || infos[0].Bytes == 0 {
			t.Errorf("Sessions: %+v, %v", infos, err)
		}
		g, err := v.Saved(t.Context(), s.info.Session)
		if err != nil || len(g.Cursors) != 1 || g.Cursors[0].Seq != uint64(n) {
			t.Errorf("Saved: %+v, %v", g, err)
		}
		report, err := v.Verify(t.Context(), s.info.Session)
		if err != nil || report.Events != int64(n) || len(report.Missing) > 0 {
			t.Errorf("Verify: %+v, %v", report, err)
		}
		if line, err := v.Lineage(t.Context(), s.info.Session); err != nil || len(line) != 1 {
			t.Errorf("Lineage: %+v, %v", line, err)
		}
	}
	logged(s, 1, 10)
	if err := s.Wait(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	check(10)
	logged(s, 11, 20)
	if err := s.Wait(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	check(20)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	check(20)
	_, err = v.History(t.Context(), "nowhere", journal.HistoryQuery{})
	wantError(t, "an unknown session", err, abi.NotFound)
}

// TestImmutable reads files in the way that is used for media that cannot be written to.
func TestImmutable(t *testing.T) {
	dir, paths := filled(t, 1)
	if err := requireCurrent(t, storefile.Schema, paths[0], sqlite.Immutable); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.Open(filepath.Join(dir, catalog.Name), sqlite.Immutable)
	if err != nil {
		t.Fatal(err)
	}
	k, err := catalog.Look(c)
	if err != nil {
		t.Fatal(err)
	}
	v := newView(k, sqlite.NewVisitor())
	defer v.Close()
	r := newReader(vouched{path: paths[0]}, sqlite.Immutable, sqlite.OpenPool(paths[0], sqlite.Immutable, 1))
	defer r.close()
	events, err := (&family{own: r}).history(t.Context(), journal.HistoryQuery{}, nil)
	wantSeqs(t, events, err, 10)
	if left, err := filepath.Glob(paths[0] + "-*"); err != nil || len(left) > 0 {
		t.Errorf("reading left %v; %v", left, err)
	}
}

// TestStrangePaths uses paths with characters that have a meaning in a URI or a pattern.
func TestStrangePaths(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), `a b?c=d&mode=memory#%41[x]*'ü`))
	s := createStore(t, d)
	logged(s, 1, 10)
	if err := s.Wait(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	children, err := d.Cut(t.Context(), splitOf(s))
	if err != nil {
		t.Fatal(err)
	}
	events, err := children[1].History(t.Context(), journal.HistoryQuery{})
	wantSeqs(t, events, err, 10)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, d.dir).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestViews compares the SQL views with what the store returns.
func TestViews(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	var want []string
	for i, k := range journal.EventKinds() {
		id := journal.EventID{Origin: s.Origin(), Seq: uint64(i + 1)}
		cause := journal.EventID{Origin: journal.Origin{0xab}, Seq: uint64(i + 1)}
		s.Append(&journal.Record{Events: []journal.Event{{ID: id, Time: int64(i), Kind: k, Graph: "g", Turn: id, Cause: cause}}})
		want = append(want, strings.Join([]string{id.String(), k.String(), id.String(), cause.String()}, " "))
	}
	s.Append(&journal.Record{
		Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 3}, {Reader: "b", Channel: "c", Seq: 3, Until: 5}},
		Heads:   []journal.HeadRow{{Channel: "c", Seq: 9}}, Channels: []journal.ChannelRow{{ID: "c", Name: "leads"}},
		Creatures: []journal.CreatureRow{{ID: "a", Name: "ann"}}, State: []journal.StateRow{{Creature: "a", Key: "k", Value: []byte("v")}},
		Timers:   []journal.TimerRow{{Creature: "a", Name: "t", Due: 3}},
		Requests: []journal.RequestRow{{ID: journal.EventID{Origin: journal.Origin{0xab}, Seq: 7}, Creature: "a", Tag: 5, Deadline: 6}},
		Wires:    []journal.OutputWire{{ID: "w1", From: "a", To: journal.ToRoot, When: "done", Order: 1}},
	})
	var letters []string
	for i, k := range journal.EventKinds() {
		if k.IsMessage() {
			id := journal.EventID{Origin: journal.Origin{0xab}, Seq: uint64(i + 1)}
			s.Append(&journal.Record{Letters: []journal.DeadLetterRow{{ID: id, Message: id, Kind: k, Creature: "a", Reason: "trap", Attempts: 2, LastWords: "alas"}}})
			letters = append(letters, strings.Join([]string{id.String(), id.String(), k.String(), "trap 2 alas"}, " "))
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	session := string(s.info.Session)
	for query, want := range map[string][]string{
		"SELECT id || ' ' || kind || ' ' || turn || ' ' || cause FROM events ORDER BY ts": want,
		"SELECT reader || ' ' || seq || ' ' || pending FROM cursors ORDER BY reader":      {"a 3 6", "b 3 2"},
		"SELECT name || ' ' || head FROM channels":                                        {"leads 9"},
		"SELECT name FROM creatures":                                                      {"ann"},
		"SELECT creature || ' ' || key || ' ' || value FROM state":                        {"a k v"},
		"SELECT creature || name || due || coalesce(period, '-') FROM timers":             {"at3-"},
		"SELECT id || ' ' || creature || tag || deadline FROM requests":                   {"ab000000000000000000000000000000-7 a56"},
		"SELECT id || coalesce(name, '-') || source || target || with_content || coalesce(prompt, '-') || predicate || allow_self || place FROM wires": {"w1-aroot0-done01"},
		"SELECT id || ' ' || message || ' ' || kind || ' ' || reason || ' ' || attempts || ' ' || last_words FROM dead_letters ORDER BY id":            letters,
		"SELECT session || ' ' || coalesce(parent, '-') || ' ' || merged_at || split_at FROM lineage":                                                  {session + " - 00"},
	} {
		got := column(t, s.path(), query)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if got := column(t, d.catalog.Path(), "SELECT session || ' ' || live FROM sessions"); len(got) != 1 || got[0] != session+" 1" {
		t.Errorf("sessions: %q", got)
	}
}

// requireCurrent returns the error of a reader that opens a file.
func requireCurrent(t *testing.T, s *sqlite.Schema, path string, mode sqlite.Mode) error {
	t.Helper()
	c, version, err := s.Open(t.Context(), path, mode)
	if err != nil {
		return err
	}
	return errors.Join(s.RequireCurrent(path, version), c.Close())
}

func column(t *testing.T, path, query string) (out []string) {
	t.Helper()
	db := sqlite.OpenPool(path, sqlite.ReadOnly, 1)
	defer db.Close()
	err := sqlite.Each(context.Background(), db, func(scan func(...any) error) error {
		var s string
		err := scan(&s)
		out = append(out, s)
		return err
	}, query)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCloseTwice(t *testing.T) {
	d, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAReaderOfWhatIsRemovedLeavesNothing opens a file for reading right before it is removed,
// when its auxiliary files have been removed already.
func TestAReaderOfWhatIsRemovedLeavesNothing(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	logged(s, 1, 10)
	path := s.path()
	if err := errors.Join(s.Wait(t.Context(), 10), s.Close(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
	var r *reader
	h := failpoint.Hooks{Reached: func(p failpoint.Point, at string) (err error) {
		if p != failpoint.Removing || at != path {
			return nil
		}
		r = ownReader(vouched{path: path})
		_, err = r.authored(t.Context())
		return err
	}}
	if err := sqlite.Remove(h, path); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) == 0 {
		t.Fatal("the reader has made no file")
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("%v are left over", left)
	}
}
