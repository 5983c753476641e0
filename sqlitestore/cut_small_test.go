package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// copyingDirectory opens a directory in which cuts copy histories of up to this many events.
func copyingDirectory(t *testing.T, dir string, events int64) *Directory {
	t.Helper()
	d, err := Open(t.Context(), dir, Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: events}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// told returns the history of a session as text. Verifying the session must find no faults.
func told(t *testing.T, v *View, session journal.SessionID) string {
	t.Helper()
	events, err := v.History(t.Context(), session, journal.HistoryQuery{})
	if err != nil {
		t.Fatalf("the history of %s: %v", session, err)
	}
	report, err := v.Verify(t.Context(), session)
	if err != nil || len(report.Missing)+len(report.Duplicate)+len(report.OutOfOrder) > 0 || report.Events != int64(len(events)) {
		t.Errorf("verifying %s with %d events: %+v, %v", session, len(events), report, err)
	}
	return fmt.Sprint(events)
}

// TestSmallHistories cuts small stores. Their children are complete at once, and the files of
// the parents are removed without any copying in the background. If the catalogue is lost,
// rebuilding it changes no history.
func TestSmallHistories(t *testing.T) {
	d := copyingDirectory(t, t.TempDir(), 100)
	parent := createStore(t, d)
	logged(parent, 1, 5)
	children := splitStore(t, d, parent)
	for i, s := range children {
		if info := s.Info(); !info.Complete {
			t.Errorf("child %d is not complete", i)
		}
	}
	merge := journal.Cut{Kind: journal.CutMerge, At: 9, Children: []journal.CutChild{{StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal,
		First: func(o journal.Origin) *journal.Record { return whole(o, 0, 1, 20) }}}}}
	for _, s := range children {
		merge.Parents, merge.Children[0].Parents = append(merge.Parents, s), append(merge.Children[0].Parents, s.info.Session)
	}
	merged, err := d.Cut(t.Context(), merge)
	if err != nil {
		t.Fatal(err)
	}
	logged(merged[0].(*Store), 2, 3)
	settle(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := files.ReadStores(d.dir); err != nil || len(names) != 1 {
		t.Errorf("the files are %v, %v; want one", names, err)
	}
	before := map[journal.SessionID]string{}
	v := mustView(t, d.dir)
	for session := range entriesOf(t, d.dir) {
		before[session] = told(t, v, session)
	}
	loseCatalog(t, d.dir)
	if report, err := Rebuild(t.Context(), d.dir); err != nil || len(report.Missing)+len(report.Aside)+len(report.Unknown) > 0 || !slices.Equal(report.Live, []journal.SessionID{merged[0].Info().Session}) {
		t.Errorf("Rebuild: %+v, %v", report, err)
	}
	v = mustView(t, d.dir)
	for session, history := range before {
		if now := told(t, v, session); now != history {
			t.Errorf("the history of %s is %s, but was %s", session, now, history)
		}
	}
}

// TestSmallHistoryOfAnIncompleteParent cuts a store that is small by itself, but needs the file
// of a large one. Its children need the large file, and not that of their parent.
func TestSmallHistoryOfAnIncompleteParent(t *testing.T) {
	dir := t.TempDir()
	o := Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: 10, Free: func() int64 { return 0 }}} // so that the background copies nothing
	d, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	large := createStore(t, d)
	logged(large, 1, 20)
	small := splitStore(t, d, large)
	logged(small[0], 2, 4)
	grandchildren := splitStore(t, d, small[0])
	_ = d.Settle(t.Context()) // there is no room to copy the large file
	entries := entriesOf(t, dir)
	for i, s := range grandchildren {
		needs, err := d.catalog.Needs(t.Context(), s.info.Session)
		if err != nil || s.Info().Complete || !slices.Equal(needs, []journal.SessionID{large.info.Session}) {
			t.Errorf("grandchild %d needs %v, %v", i, needs, err)
		}
	}
	if entries[small[0].info.Session].File != "" || entries[large.info.Session].File == "" {
		t.Errorf("the large session should be the only ended one with a file: %+v", entries)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	before := map[journal.SessionID]string{}
	v := mustView(t, dir)
	for session := range entries {
		before[session] = told(t, v, session)
	}
	loseCatalog(t, dir)
	if report, err := Rebuild(t.Context(), dir); err != nil || len(report.Missing)+len(report.Aside)+len(report.Unknown) > 0 || len(report.Live) != 3 {
		t.Errorf("Rebuild: %+v, %v", report, err)
	}
	v = mustView(t, dir)
	for session, history := range before {
		if now := told(t, v, session); now != history {
			t.Errorf("the history of %s is %s, but was %s", session, now, history)
		}
	}
	d = copyingDirectory(t, dir, 10)
	for _, s := range grandchildren {
		if _, err := d.Open(t.Context(), s.info.Session); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, d)
	for session, e := range entriesOf(t, dir) {
		if slices.ContainsFunc(grandchildren, func(s *Store) bool { return s.info.Session == session }) && !e.Complete {
			t.Errorf("%s is not complete", session)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	v = mustView(t, dir)
	for session, history := range before {
		if now := told(t, v, session); now != history {
			t.Errorf("the history of %s is %s, but was %s", session, now, history)
		}
	}
}

// TestDescribedSessions lists ended sessions from their descriptions in the catalogue, without
// their files. Verifying compares the descriptions with the files, because the catalogue may
// have been forged.
func TestDescribedSessions(t *testing.T) {
	d := copyingDirectory(t, t.TempDir(), 0)
	s := createStore(t, d)
	logged(s, 1, 7)
	s.Append(&journal.Record{Meta: map[string]string{"name": "x"}})
	if err := d.Retire(t.Context(), s.info.Session); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	described, err := d.catalog.Described(t.Context())
	if err != nil || described[s.info.Session] != 7 {
		t.Errorf("the catalogue describes %v, %v", described, err)
	}
	// A verification may have read the entry before the background described the session.
	early, err := d.catalog.Entry(t.Context(), "verify", s.info.Session)
	if err != nil {
		t.Fatal(err)
	}
	early.Meta = map[string]string{}
	f, err := d.catalog.openFamily(t.Context(), early, false)
	if err != nil {
		t.Fatal(err)
	}
	if odd, err := d.catalog.oddDescription(t.Context(), early, f); err != nil || len(odd) > 0 {
		t.Errorf("with an entry from before the description: %q, %v", odd, err)
	}
	if err := errors.Join(f.close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if list, err := mustView(t, d.dir).Sessions(t.Context()); err != nil || len(list) != 1 || list[0].Events != 7 || list[0].Meta["name"] != "x" || list[0].Bytes == 0 {
		t.Errorf("Sessions: %+v, %v", list, err)
	}
	execute(t, d.catalog.Path(), `UPDATE store SET events = 8, meta = '{"name": "y"}'`)
	report, err := mustView(t, d.dir).Verify(t.Context(), s.info.Session)
	want := []string{
		fmt.Sprintf("the catalogue says that the file of session %s has 8 events, and it has 7", s.info.Session),
		fmt.Sprintf(`the catalogue says that the metadata of session %s is {"name":"y"}, and its file says {"name":"x"}`, s.info.Session),
	}
	// The other findings are about the rows of logged, which belong to no creature or channel.
	if err != nil || !slices.Equal(report.Damage[max(len(report.Damage)-len(want), 0):], want) {
		t.Errorf("Verify: %q, %v; want %q", report.Damage, err, want)
	}
}

// TestDescribedWhileItMoves has a session that gets its whole file, and is described again,
// while its first file is being verified.
func TestDescribedWhileItMoves(t *testing.T) {
	t.Parallel()
	var free atomic.Int64 // zero, so that no history is copied
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: -1, Free: free.Load}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	parent := createStore(t, d)
	logged(parent, 1, 20)
	s := splitStore(t, d, parent)[0]
	if err := d.Retire(t.Context(), s.info.Session); err != nil {
		t.Fatal(err)
	}
	e, err := d.catalog.Entry(t.Context(), "verify", s.info.Session)
	if err != nil || e.Live || e.Complete {
		t.Fatalf("the session is %+v, %v; want it ended and incomplete", e, err)
	}
	f, err := d.catalog.openFamily(t.Context(), e, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	free.Store(1 << 40)
	settle(t, d)
	described, err := d.catalog.Described(t.Context())
	if err != nil || described[e.Session] != 21 {
		t.Fatalf("the catalogue describes %v, %v", described, err)
	}
	if odd, err := d.catalog.oddDescription(t.Context(), e, f); !errors.Is(err, errMoved) {
		t.Errorf("%q, %v; want %v", odd, err, errMoved)
	}
}

// TestReleaseOfAnUnreadableFile has two ended sessions whose files are no longer needed, and
// which the catalogue does not describe. The first file cannot be read, which is reported. The
// second is removed nevertheless.
func TestReleaseOfAnUnreadableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: 100, Reached: func(p failpoint.Point, _ string) error {
		if p == failpoint.Releasing {
			return errDisk
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := createStore(t, d)
		logged(s, 1, 5)
		splitStore(t, d, s)
	}
	wantError(t, "Settle", d.Settle(t.Context()), abi.Storage)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, d.catalog.Path(), "UPDATE store SET events = NULL WHERE NOT live")
	var ended []string
	for _, e := range entriesOf(t, dir) {
		if !e.Live {
			ended = append(ended, e.Path)
		}
	}
	slices.Sort(ended)
	if len(ended) != 2 || missing(ended[0]) || missing(ended[1]) {
		t.Fatalf("%q are left of the ended sessions, want two files", ended)
	}
	if err := os.WriteFile(ended[0], []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	d = copyingDirectory(t, dir, 100)
	defer d.Close()
	wantError(t, "Settle with an unreadable file", d.Settle(t.Context()), abi.Storage, ended[0])
	if missing(ended[0]) || !missing(ended[1]) {
		t.Errorf("the unreadable file was removed: %v, want false; the other was removed: %v, want true", missing(ended[0]), missing(ended[1]))
	}
}
