package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// sparesOf opens a directory and waits until its first spare files are ready. It takes one and
// leaves the others. From then on, fails decides whether a step fails.
func sparesOf(t *testing.T, fails func(failpoint.Point) error) (*Directory, *spareFile) {
	t.Helper()
	armed := false
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{Reached: func(p failpoint.Point, _ string) error {
		if armed {
			return fails(p)
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	taken, err := d.spares.take(1)
	if err != nil {
		t.Fatal(err)
	}
	d.spares.rest(t)
	armed = true
	return d, taken[0]
}

// rest stops the goroutine that makes files, once there are as many as wanted. The test then
// does its work by calling refill and shrink.
func (s *spares) rest(t *testing.T) {
	t.Helper()
	close(s.stop)
	<-s.done
	s.stop = make(chan struct{}) // so that files can be made and closed as before
	for s.refill() {
	}
	if len(s.ready) != s.wanted {
		t.Fatalf("%d files are ready, want %d", len(s.ready), s.wanted)
	}
}

// onDisk returns the files of stores that exist.
func (s *spares) onDisk(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(s.sessions.Path()), files.Stores, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return filepath.Ext(path) != files.StoreSuffix })
}

func TestSparesFollowTheNeed(t *testing.T) {
	d, first := sparesOf(t, func(failpoint.Point) error { return nil })
	s, out := d.spares, []*spareFile{first}
	take := func(n, wanted int) {
		t.Helper()
		taken, err := s.take(n)
		if err != nil || len(taken) != n {
			t.Fatalf("%d files were taken (%v), want %d", len(taken), err, n)
		}
		if out = append(out, taken...); s.wanted != wanted {
			t.Errorf("after %d were taken, %d are wanted, want %d", n, s.wanted, wanted)
		}
	}
	take(fewestSpares, fewestSpares)
	take(1, 2*fewestSpares) // no file was ready
	take(1, 2*fewestSpares) // and none could be ready yet
	for n := 2 * fewestSpares; n <= mostSpares; n *= 2 {
		for s.refill() {
		}
		take(n+1, min(2*n, mostSpares))
	}
	seen := map[string]bool{}
	for _, p := range out {
		if seen[p.path] {
			t.Errorf("%s was taken twice", p.path)
		}
		seen[p.path] = true
	}
	for s.refill() {
	}
	for wanted := mostSpares / 2; wanted >= fewestSpares; wanted /= 2 {
		s.shrink()
		if there := len(s.onDisk(t)) - len(out); len(s.ready) != wanted || there != wanted {
			t.Errorf("%d files are ready and %d exist, want %d", len(s.ready), there, wanted)
		}
	}
	s.shrink()
	if len(s.ready) != fewestSpares {
		t.Errorf("%d files are ready, want %d", len(s.ready), fewestSpares)
	}
	if err := s.discard(out); err != nil {
		t.Error(err)
	}
}

// When files cannot be made, nothing is left over, and no file is removed.
func TestSparesThatFail(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, at := range []failpoint.Point{failpoint.SpareWritten, failpoint.SpareReady} {
		for nth := range int64(3) {
			t.Run(fmt.Sprintf("%s/%d", at, nth), func(t *testing.T) {
				var met atomic.Int64
				d, first := sparesOf(t, func(p failpoint.Point) error {
					if p == at && met.Add(1) == nth+1 {
						return broken
					}
					return nil
				})
				before := d.spares.onDisk(t)
				if _, err := d.spares.take(fewestSpares + 3); !errors.Is(err, broken) {
					t.Errorf("taking more files than there are returns %v", err)
				}
				if after := d.spares.onDisk(t); !slices.Equal(after, before) {
					t.Errorf("the files are %q, want %q", after, before)
				}
				taken, err := d.spares.take(fewestSpares)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.spares.discard(append(taken, first)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A file that was used for a rehearsal is the same as one that was not.
func TestRehearsalLeavesNothing(t *testing.T) {
	d, p := sparesOf(t, func(failpoint.Point) error { return nil })
	content := func() string {
		t.Helper()
		var out []string
		err := p.c.Query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", nil, func(v []driver.Value) error {
			out = append(out, v[0].(string))
			return nil
		})
		for i, table := range out {
			err = errors.Join(err, p.c.Query("SELECT * FROM "+table, nil, func(v []driver.Value) error {
				out[i] += fmt.Sprintf(" %v", v)
				return nil
			}))
		}
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(out, p.origins, p.last, p.unindexed, p.unspanned, p.pending, p.marked, p.claimed)
	}
	fresh, err := d.spares.writeLayouts(1)
	if err != nil {
		t.Fatal(err)
	}
	rehearsed := p.writer
	plain, err := openWriter(fresh[0], rehearsed.durability, rehearsed.own, d.options.hooks)
	if err == nil {
		err = plain.c.Transact(plain.claim)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain.claimed = true
	got := content()
	p.writer = plain
	if want := content(); got != want {
		t.Errorf("the file contains\n%s\nwant\n%s", got, want)
	}
	if err := errors.Join(rehearsed.close(), sqlite.Remove(d.options.hooks, rehearsed.path), d.spares.discard([]*spareFile{p})); err != nil {
		t.Error(err)
	}
}
