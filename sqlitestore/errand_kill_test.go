package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// errand is a command that runs once and ends by itself. A victim runs it until it is killed.
// The next victim runs it again, with the same order.
type errand struct {
	Word    string            // upgrade, open, fork, fork-at, export, adopt, prune, resume, lag, replace or stop
	Session journal.SessionID // fork, fork-at, export, prune
	File    string            // adopt: what was exported
	To      string            // fork, fork-at, export, adopt: the copy to be made
	Owner   bool              // fork, fork-at, export: the directory belongs to this process
	At      journal.Mark      // fork-at
	Bound   Retention         // prune
	Resume  *resuming         `json:",omitempty"`
	Lagging *lagging          `json:",omitempty"`
	Replace *replacing        `json:",omitempty"`
	Stop    *stopping         `json:",omitempty"`
}

// errandKills is how often a test of errands kills. Errands take longer than the program of
// TestKilled, and have fewer steps.
func errandKills(t *testing.T) int { return (kills(t) + 5) / 6 }

// run runs the errand. It reports every failpoint, so that the process can be killed a moment
// after any, and finally that it has reached its end.
func (a *errand) run(o order) error {
	ctx := context.Background()
	losevfs.Mount(o.Dir, 0) // so that SQLite does not sync either
	die := dieAt(o.Point, o.Pass)
	options := smallChunks(func(p failpoint.Point, path string) error {
		tell(progress{Word: "at", Text: p.String()})
		return die(p, path)
	})
	tell(progress{Word: "at", Text: "the beginning"})
	err := a.do(ctx, o.Dir, options)
	if err == nil {
		tell(progress{Word: "end"})
	}
	return err
}

func (a *errand) do(ctx context.Context, dir string, options Options) error {
	switch a.Word {
	case "upgrade":
		return upgrade(ctx, dir, options.hooks)
	case "open":
		return openAll(ctx, dir, options)
	case "fork", "fork-at", "export":
		return a.fork(ctx, dir, options.hooks)
	case "adopt":
		return adopt(ctx, a.File, a.To, options.hooks)
	case "prune":
		return a.prune(ctx, dir, options)
	case "resume":
		return a.Resume.run(ctx, dir, options)
	case "lag":
		return a.Lagging.run(ctx, dir, options)
	case "replace":
		return a.Replace.run(ctx, dir, options)
	case "stop":
		return a.Stop.run(ctx, dir, options)
	}
	return fmt.Errorf("there is no errand %s", a.Word)
}

// openAll opens every live session for writing, and waits for the work in the background.
func openAll(ctx context.Context, dir string, options Options) error {
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	graphs, problems, err := d.Saved(ctx)
	if err = errors.Join(append(problems, err)...); err != nil {
		return err
	}
	for _, g := range graphs {
		if _, err := d.Open(ctx, g.Session); err != nil {
			return err
		}
	}
	return errors.Join(d.Settle(ctx), d.Close())
}

// sendOff lets a process run an errand until it dies, at the point or a moment after some line.
// It returns what the process reported, and whether it reached its end.
func (a *errand) sendOff(t *testing.T, o order, random *rand.Rand) (lines []progress, done bool) {
	t.Helper()
	o.Errand = a
	runVictim(t, o, random, func(text []byte) {
		var line progress
		switch {
		case json.Unmarshal(text, &line) != nil: // an incomplete line means nothing
		case line.Word == "error":
			t.Errorf("to %s failed: %s", a.Word, line.Text)
		case line.Word == "end":
			done = true
		default:
			lines = append(lines, line)
		}
	})
	if t.Failed() {
		t.Fatalf("in a life that was to %s and end at %s, pass %d", a.Word, pointName(o.Point), o.Pass)
	}
	return lines, done
}

// answersOf returns everything that can be read of the sessions of a directory, by session:
// history, lineage, live rows, state and dead letters. Each session must be sound.
func answersOf(t *testing.T, dir string) map[journal.SessionID]string {
	t.Helper()
	v, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	list, err := v.Catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[journal.SessionID]string{}
	for _, info := range list {
		r := retell(t, v, info.Session)
		wantNoFindings(t, info.Session, r.report, r.verifyErr)
		out[info.Session] = r.String()
		if r.rowsErr != nil {
			continue // its file has been removed, as r reports
		}
		letters, err := v.DeadLetters(t.Context(), info.Session, "", journal.EventID{}, 1<<30)
		out[info.Session] += fmt.Sprint(letters, err)
		for _, c := range r.graph.Creatures {
			state, err := v.State(t.Context(), info.Session, c.ID)
			out[info.Session] += fmt.Sprint(c.ID, state, err)
		}
	}
	return out
}

// wantWhole verifies a session.
func wantWhole(t *testing.T, v *View, session journal.SessionID) {
	t.Helper()
	report, err := v.Verify(t.Context(), session)
	wantNoFindings(t, session, report, err)
}

func wantNoFindings(t *testing.T, session journal.SessionID, report journal.VerifyReport, err error) {
	t.Helper()
	if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); n > 0 || err != nil {
		t.Errorf("session %s: %+v, %v", session, report, err)
	}
}

// wantAnswers compares everything that can be read of two directories.
func wantAnswers(t *testing.T, dir string, want map[journal.SessionID]string) {
	t.Helper()
	got := answersOf(t, dir)
	for session, text := range want {
		if got[session] != text {
			t.Errorf("session %s has %.800s\nwant %.800s", session, got[session], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d sessions, want %d", len(got), len(want))
	}
}

// wantTidy checks that an unused directory contains only its catalogue, its lock, the files of
// its sessions, those that the catalogue will finish or remove, and originals of older files.
func wantTidy(t *testing.T, dir string) {
	t.Helper()
	k := mustView(t, dir).catalog
	known, err := k.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known[k.Path()], known[filepath.Join(dir, lockName)], known[filepath.Join(dir, search.Name)] = true, true, true
	known[filepath.Join(dir, catalog.AcknowledgedName)] = true
	for _, path := range filesIn(t, dir) {
		plain := path
		for _, suffix := range sqlite.Suffixes[1:] {
			plain = strings.TrimSuffix(plain, suffix)
		}
		if !known[plain] && !slices.Contains(originalsIn(t, dir), path) {
			t.Errorf("%s is left over", path)
		}
	}
}

// filesIn returns the files of a directory and of its subdirectories.
func filesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, f os.DirEntry, err error) error {
		if err == nil && !f.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// originalsIn returns the files that were kept as they had been before a migration.
func originalsIn(t *testing.T, dir string) []string {
	t.Helper()
	catalogs, err := filepath.Glob(filepath.Join(dir, catalog.Name+".v[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	stores, err := filepath.Glob(filepath.Join(dir, files.Stores, "*"+files.StoreSuffix+".v[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	return append(catalogs, stores...)
}
