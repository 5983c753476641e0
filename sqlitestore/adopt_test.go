package sqlitestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// exported exports the live session of a directory to a file of its own.
func exported(t *testing.T, dir string) (path string, session journal.SessionID) {
	t.Helper()
	path, session = filepath.Join(t.TempDir(), "alone.db"), liveSessions(t, dir)[0]
	if err := mustView(t, dir).Export(t.Context(), session, path); err != nil {
		t.Fatal(err)
	}
	return path, session
}

// TestAdoptOlderVersions adopts exported files as older versions wrote them. The session has
// everything that it had, and continues. The exported file is not changed, and the directory
// has only the copy of it.
func TestAdoptOlderVersions(t *testing.T) {
	from := lineaged(t)
	for version := 1; version <= int(storefile.Schema.Version); version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			file, session := exported(t, from)
			age(t, file, version)
			was := contentOf(t, file)
			dir := filepath.Join(t.TempDir(), "adopted")
			if err := Adopt(t.Context(), file, dir); err != nil {
				t.Fatal(err)
			}
			if contentOf(t, file) != was || len(filesIn(t, filepath.Dir(file))) != 1 {
				t.Errorf("the exported file has changed, or is not alone: %v", filesIn(t, filepath.Dir(file)))
			}
			if live := liveSessions(t, dir); len(live) != 1 || live[0] != session {
				t.Fatalf("the live sessions are %v, want %s", live, session)
			}
			wantTidy(t, dir)
			if left := originalsIn(t, dir); len(left) > 0 {
				t.Errorf("originals of the copy were kept: %v", left)
			}
			wantAdopted(t, from, dir, session)
			wantForkable(t, dir, session)
			if err := openAll(t.Context(), dir, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantAdopted compares a session with what it was in another directory.
func wantAdopted(t *testing.T, from, dir string, session journal.SessionID) {
	t.Helper()
	old, fresh := mustView(t, from), mustView(t, dir)
	wantWhole(t, fresh, session)
	if got, want := fmt.Sprint(history(t, fresh, session)), fmt.Sprint(history(t, old, session)); got != want {
		t.Errorf("the history is %.500s\nwant %.500s", got, want)
	}
	got, err := fresh.Saved(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	want, err := old.Saved(t.Context(), session)
	if got.Path, want.Path = "", ""; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the rows are %+v, want %+v; %v", got, want, err)
	}
}

// wantForkable forks a session, as a program does that continues an adopted file.
func wantForkable(t *testing.T, dir string, session journal.SessionID) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "fork")
	fork, err := mustView(t, dir).Fork(t.Context(), session, to)
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, mustView(t, to), fork)
	wantTidy(t, to)
}

// TestAdoptRefuses tries files whose session cannot continue.
func TestAdoptRefuses(t *testing.T) {
	file, _ := exported(t, lineaged(t))
	execute(t, file, fmt.Sprintf("PRAGMA user_version = %d", storefile.Schema.Version+1))
	catalog := filepath.Join(lineaged(t), catalog.Name)
	for what, path := range map[string]string{"a newer file": file, "a catalogue": catalog, "no file": filepath.Join(t.TempDir(), "none.db")} {
		dir := filepath.Join(t.TempDir(), "adopted")
		wantError(t, what, Adopt(t.Context(), path, dir), abi.InvalidArgument, path)
		if !missing(dir) {
			t.Errorf("%s: something was created", what)
		}
	}
}
