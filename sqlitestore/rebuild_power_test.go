package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const rebuildSeeds = 2

// TestRebuildAfterPowerLoss lets the power fail at any moment of random programs, and then
// loses the catalogue. The new catalogue has the same content as the old one, all sessions read
// the same, everything that was acknowledged is left, and the stores continue.
func TestRebuildAfterPowerLoss(t *testing.T) {
	t.Parallel()
	for _, durability := range []journal.Durability{journal.Full, journal.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds(t, rebuildSeeds)) {
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					p := newPowerProgram(t, durability, seed)
					p.small = []int64{-1, 12, 40}[seed%3]
					for range powerRounds {
						p.round(t, 1+p.random.IntN(powerOperations))
						before := duplicate(t, p.dir)
						loseCatalog(t, p.dir)
						if _, err := os.Stat(filepath.Join(before, catalog.Name)); err != nil {
							continue // the power failed before there was a catalogue
						}
						if n, err := countStores(p.dir); n == 0 || err != nil {
							continue
						}
						if _, err := Rebuild(t.Context(), p.dir); err != nil {
							t.Fatal(err)
						}
						decideIn(t, before)
						for _, d := range differences(t, before, p.dir) {
							t.Error(d)
						}
						p.restart(t, durability == journal.Full)
						if t.Failed() {
							return
						}
					}
				})
			}
		})
	}
}

// decideIn decides the cuts that were not durable when the power failed, as the next start
// does, and does nothing else. The result of Rebuild is compared with that.
func decideIn(t *testing.T, dir string) {
	t.Helper()
	k, err := catalog.Take(filepath.Join(dir, catalog.Name), WithoutSyncs.hooks)
	if err != nil {
		t.Fatal(err)
	}
	d := &Directory{dir: dir, options: WithoutSyncs, archive: archive{catalog: &sessions{Catalog: k}}}
	if err := errors.Join(d.decide(t.Context()), k.Close()); err != nil {
		t.Fatal(err)
	}
}

// duplicate copies a directory. In a directory that is in use, spare files may appear and
// disappear.
func duplicate(t *testing.T, dir string) string {
	t.Helper()
	for range 100 {
		to := filepath.Join(t.TempDir(), "copy")
		err := os.CopyFS(to, os.DirFS(dir))
		if err == nil {
			return to
		}
		if !errors.Is(err, fs.ErrNotExist) { // a spare file has got its name meanwhile
			t.Fatal(err)
		}
	}
	t.Fatalf("files of %s disappear whenever the directory is copied", dir)
	return ""
}

func loseCatalog(t *testing.T, dir string) {
	t.Helper()
	if err := sqlite.Remove(failpoint.Hooks{}, filepath.Join(dir, catalog.Name)); err != nil {
		t.Fatal(err)
	}
}

// known is what a catalogue says about a session, as far as it must be the same in a catalogue
// that was rebuilt.
type known struct {
	Graph                      journal.GraphID
	Born                       uint64
	Durability                 journal.Durability
	Created, MergedAt, SplitAt int64
	Parents                    []journal.SessionID
	Cut, Kind                  string
}

func knownOf(e catalog.Entry) known {
	return known{e.Graph, e.Born, e.Durability, e.Created, e.MergedAt, e.SplitAt, e.Parents, e.Cut, string(e.Kind)}
}

// differences compares a directory with one whose catalogue was rebuilt.
func differences(t *testing.T, before, after string) (out []string) {
	t.Helper()
	c := comparison{t: t, dir: after, old: entriesOf(t, before), fresh: entriesOf(t, after)}
	for _, session := range slices.Sorted(maps.Keys(c.fresh)) {
		if _, there := c.old[session]; !there && !c.marked(c.fresh[session], storefile.Unused) {
			out = append(out, fmt.Sprintf("the session %s did not exist before", session))
		}
	}
	old, fresh := mustView(t, before), mustView(t, after)
	for _, session := range slices.Sorted(maps.Keys(c.old)) {
		if why := c.compare(session); why != "" {
			out = append(out, fmt.Sprintf("%s: %s", session, why))
			continue
		}
		if _, there := c.fresh[session]; !there {
			continue
		}
		now, then := retell(t, fresh, session), retell(t, old, session)
		if c.old[session].File == "" && then.rowsErr != nil {
			// The file was about to be removed, and Rebuild has found it with its rows.
			now.graph, now.rowsErr = then.graph, then.rowsErr
		}
		if now.String() != then.String() && !c.outlived(old, fresh, session) {
			out = append(out, fmt.Sprintf("%s reads differently: %.500s\nbefore: %.500s", session, now, then))
		}
	}
	return out
}

type comparison struct {
	t          *testing.T
	dir        string
	old, fresh map[journal.SessionID]catalog.Entry
}

// compare returns what is wrong with a session in the new catalogue.
func (c *comparison) compare(session journal.SessionID) string {
	old := c.old[session]
	fresh, there := c.fresh[session]
	if !there {
		return "the session does not exist"
	}
	two := len(c.filesOf(session)) > 1 // the session may be in either of two files
	switch {
	case !reflect.DeepEqual(knownOf(old), knownOf(fresh)):
		return fmt.Sprintf("the session was %+v, but is %+v", knownOf(old), knownOf(fresh))
	case old.Live != fresh.Live && !c.parentOfNew(session):
		return fmt.Sprintf("live was %v before", old.Live)
	case old.File != "" && old.File != fresh.File && !two:
		return fmt.Sprintf("the file was %q, but is %q", old.File, fresh.File)
	case old.File != "" && old.Complete != fresh.Complete && !two:
		return fmt.Sprintf("complete was %v before", old.Complete)
	}
	return ""
}

// outlived reports whether a session that was between two files continues in the file that was
// about to become its own. That file also has what a power loss removed from the other, so it
// may have more events.
func (c *comparison) outlived(old, fresh *View, session journal.SessionID) bool {
	if c.old[session].File == c.fresh[session].File || len(c.filesOf(session)) < 2 {
		return false
	}
	has := map[journal.EventID]bool{}
	for _, e := range history(c.t, fresh, session) {
		has[e.ID] = true
	}
	return !slices.ContainsFunc(history(c.t, old, session), func(e journal.Event) bool { return !has[e.ID] })
}

func history(t *testing.T, v *View, session journal.SessionID) []journal.Event {
	t.Helper()
	events, err := v.History(t.Context(), session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		t.Error(err)
	}
	return events
}

// parentOfNew reports whether the session is a parent in a cut that the old catalogue does not
// have.
func (c *comparison) parentOfNew(session journal.SessionID) bool {
	for child, e := range c.fresh {
		if _, there := c.old[child]; !there && slices.Contains(e.Parents, session) {
			return true
		}
	}
	return false
}

func (c *comparison) marked(e catalog.Entry, mark string) bool {
	in, _, err := storefile.Schema.Open(context.Background(), filepath.Join(c.dir, files.Stores, e.File), sqlite.ReadOnly)
	if err != nil {
		return false
	}
	_, found, err := in.Integer("SELECT 1 FROM store WHERE key = ?", mark)
	return errors.Join(err, in.Close()) == nil && found
}

// filesOf returns the files that claim to belong to a session.
func (c *comparison) filesOf(session journal.SessionID) []string {
	found, err := filepath.Glob(filepath.Join(c.dir, files.Stores, "*"+files.StoreSuffix))
	if err != nil {
		c.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(path string) bool {
		return !storefile.Says(c.t.Context(), path, "session", string(session))
	})
}

func entriesOf(t *testing.T, dir string) map[journal.SessionID]catalog.Entry {
	t.Helper()
	out := map[journal.SessionID]catalog.Entry{}
	entries, err := mustView(t, dir).catalog.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out[e.Session] = e
	}
	return out
}

func mustView(t *testing.T, dir string) *View {
	t.Helper()
	v, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// answerOf returns everything that can be read of a session and that does not depend on its
// file.
func answerOf(t *testing.T, v *View, session journal.SessionID) string {
	t.Helper()
	return retell(t, v, session).String()
}

// retelling is everything that can be read of a session.
type retelling struct {
	events                                  []journal.Event
	ancestors                               []journal.SessionID
	report                                  journal.VerifyReport
	graph                                   journal.SavedGraph
	historyErr, lineErr, verifyErr, rowsErr error
}

func retell(t *testing.T, v *View, session journal.SessionID) *retelling {
	t.Helper()
	r := &retelling{}
	r.events, r.historyErr = v.History(t.Context(), session, journal.HistoryQuery{Limit: 1 << 30})
	line, err := v.Lineage(t.Context(), session)
	for _, l := range line {
		r.ancestors = append(r.ancestors, l.Session)
	}
	r.lineErr = err
	r.report, r.verifyErr = v.Verify(t.Context(), session)
	r.report.IncompleteFrom = nil
	r.graph, r.rowsErr = v.Saved(t.Context(), session)
	r.graph.Path = ""
	if r.rowsErr != nil { // its file has been removed, or is about to be
		r.graph = journal.SavedGraph{}
	}
	return r
}

func (r *retelling) String() string {
	return fmt.Sprintf("%v %v %+v %v %v %v, %d events %v, %v", r.ancestors, r.lineErr, r.report, r.verifyErr, r.historyErr, r.graph,
		len(r.events), r.events, r.rowsErr == nil)
}
