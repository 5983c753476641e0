package sqlitestore

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// mover has a session that gets another file, and is in two files for a while.
type mover struct {
	t       *testing.T
	dir     string // where the session continues in the second file
	stopped string // a copy from the time when the second file was complete, but not yet the session's
	session journal.SessionID
	path    string // of the first file, in stopped
	s       *Store
}

// ownEvents are those of the mover's session in its first file. inheritedEvents are those of
// its parent.
const ownEvents, inheritedEvents = 20, 30

// moved makes a session that has moved, and then does more with it.
func moved(t *testing.T, then func(*mover, *Directory)) *mover {
	t.Helper()
	m := &mover{t: t, dir: t.TempDir(), stopped: filepath.Join(t.TempDir(), "stopped")}
	copied := make(chan error, 1)
	d, err := Open(t.Context(), m.dir, smallChunks(func(p failpoint.Point, path string) error {
		if p == failpoint.Finished && strings.HasPrefix(filepath.Base(path), string(m.session)) {
			copied <- copyKilled(m.stopped, m.dir)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	parent := createStore(t, d)
	parent.Append(whole(parent.Origin(), 0, inheritedEvents, 10))
	split := splitOf(parent)
	split.Children = split.Children[:1]
	split.Kind = "merge"
	children, err := d.Cut(t.Context(), split)
	if err != nil {
		t.Fatal(err)
	}
	m.s = children[0].(*Store)
	m.session, m.path = m.s.info.Session, filepath.Join(m.stopped, files.Stores, filepath.Base(m.s.path()))
	m.s.Append(whole(m.s.Origin(), 0, ownEvents, 10))
	settle(t, d)
	if err := <-copied; err != nil {
		t.Fatal(err)
	}
	then(m, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

// writeMore writes more events to the second file of the session.
func writeMore(m *mover, _ *Directory) { m.s.Append(whole(m.s.Origin(), ownEvents, 5, 10)) }

// bringBack restores the first file, as it was before it was marked as left.
func (m *mover) bringBack() {
	m.t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		if from := m.path + suffix; !missing(from) {
			replace(m.t, filepath.Join(m.dir, files.Stores, filepath.Base(from)), from)
		}
	}
}

// loseTail removes the last events of the session from the first file, as a power loss does.
// The second file has these events.
func (m *mover) loseTail() {
	m.t.Helper()
	left := ownEvents / 2
	execute(m.t, m.path, fmt.Sprintf("DELETE FROM event WHERE id >> 40 = (SELECT no FROM origin WHERE uuid = x'%x') AND id & 0xffffffffff > %d", m.s.origin[:], left))
	execute(m.t, m.path, fmt.Sprintf("UPDATE cursor SET seq = %d; UPDATE head SET seq = %d; UPDATE meta SET value = '%d'", left, left, left))
}

// rebuilds loses the catalogue of a directory, rebuilds it, and checks that the session
// continues with the given number of events. Nothing must be left for an operator to do.
func (m *mover) rebuilds(dir string, events int) {
	m.t.Helper()
	loseCatalog(m.t, dir)
	report, err := Rebuild(m.t.Context(), dir)
	if err != nil || len(report.Live) != 1 || len(report.Aside)+len(report.Unreadable)+len(report.Missing) > 0 {
		m.t.Fatalf("%+v, %v", report, err)
	}
	history, err := mustView(m.t, dir).History(m.t.Context(), m.session, journal.HistoryQuery{Limit: 1 << 20})
	if err != nil || len(history) != events {
		m.t.Errorf("%d events are left, want %d; %v", len(history), events, err)
	}
	keepsTo(m.t, dir, smallChunks(nil), report.Live)
	files, err := filepath.Glob(filepath.Join(dir, files.Stores, string(m.session)+"*"))
	if err != nil || len(files) != 1 {
		m.t.Errorf("%v are left; %v", files, err)
	}
}

// TestRebuildAfterMove has both files. The second was written to before the power failed, but
// the first was neither marked nor removed.
func TestRebuildAfterMove(t *testing.T) {
	m := moved(t, writeMore)
	m.bringBack()
	m.rebuilds(m.dir, inheritedEvents+ownEvents+5)
}

// TestRebuildBeforeMove has both files. The second has the events that a power loss removed
// from the first.
func TestRebuildBeforeMove(t *testing.T) {
	m := moved(t, writeMore)
	m.loseTail()
	m.rebuilds(m.stopped, inheritedEvents+ownEvents)
}

// TestRebuildWithoutMove lets the session continue in the first file after that, under another
// origin. Its new events count, and those that it had lost do not.
func TestRebuildWithoutMove(t *testing.T) {
	m := moved(t, writeMore)
	m.loseTail()
	options := smallChunks(nil)
	options.hooks.Opened = func(path string, _ func(string) error) error { // fails before the second file has been made again
		if isNumbered(path) {
			return errDisk
		}
		return nil
	}
	d, err := Open(t.Context(), m.stopped, options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(t.Context(), m.session)
	if err != nil {
		t.Fatal(err)
	}
	s.Append(whole(s.Origin(), 0, 3, 10))
	if err := s.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m.rebuilds(m.stopped, inheritedEvents+ownEvents/2+3)
}

// TestRebuildAfterMoveAndCut has both files of a session that has moved and was then cut. The
// session wrote to the second file only that it is parked for the cut, and its child wrote
// nothing. That is enough to know that the cut has happened.
func TestRebuildAfterMoveAndCut(t *testing.T) {
	var child *Store
	m := moved(t, func(m *mover, d *Directory) { child = splitStore(t, d, m.s)[0] })
	var live []journal.SessionID
	for session, e := range entriesOf(t, m.dir) {
		if e.Live {
			execute(t, e.Path, "INSERT OR REPLACE INTO store (key, value) VALUES ('unused', '1')")
			live = append(live, session)
		}
	}
	if slices.Sort(live); len(live) != 2 || !slices.Contains(live, child.info.Session) {
		t.Fatalf("the live sessions are %v, want two children", live)
	}
	m.bringBack()
	loseCatalog(t, m.dir)
	report, err := Rebuild(t.Context(), m.dir)
	slices.Sort(report.Live)
	if err != nil || !slices.Equal(report.Live, live) || len(report.Aside)+len(report.Unreadable)+len(report.Missing) > 0 {
		t.Errorf("Rebuild: %+v, %v; %v were live", report, err, live)
	}
}
