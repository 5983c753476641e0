package sqlitestore

import (
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// pageSize is the size of the pages of a database.
func pageSize(t *testing.T, path string) int64 {
	t.Helper()
	c, err := sqlite.Open(path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := c.Integer("PRAGMA page_size")
	if err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return n
}

// TestPages creates a store among few others, with pages of the usual size, and one among many,
// with small pages. The latter grows, and gets pages of the usual size. Without space on the
// disk, it keeps its small pages, and the next process enlarges them.
func TestPages(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	dir := t.TempDir()
	o := Options{naps: naps{most: 1, first: 1}, hooks: failpoint.Hooks{Unsynced: true, Free: free.Load}}
	d, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[*Store]int64{}
	var stores []*Store
	for range 3 {
		s := createStore(t, d)
		sizes[s] = pageSize(t, s.path())
		stores = append(stores, s)
	}
	first, grows, stays := stores[0], stores[1], stores[2]
	if sizes[first] != sqlite.UsualPage || sizes[grows] != smallPage || sizes[stays] != smallPage {
		t.Errorf("the pages have %d, %d and %d bytes", sizes[first], sizes[grows], sizes[stays])
	}
	grow := func(s *Store) {
		from := s.highest.Load()
		logged(s, from+1, from+outgrownBytes/1000+1)
		if err := s.Wait(t.Context(), s.highest.Load()); err != nil {
			t.Fatal(err)
		}
		if err := s.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	grow(grows)
	settle(t, d)
	if n := pageSize(t, grows.path()); n != sqlite.UsualPage || grows.pages.outgrown.Load() {
		t.Errorf("the pages of a file that has grown have %d bytes", n)
	}
	appendMore(t, grows)
	free.Store(0)
	grow(stays)
	settle(t, d)
	if n := pageSize(t, stays.path()); n != smallPage {
		t.Errorf("the pages have %d bytes, although the disk is full", n)
	}
	want := map[journal.SessionID]int{}
	for _, s := range stores {
		want[s.info.Session] = int(s.highest.Load())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	free.Store(1 << 40)
	if d, err = Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	opened, err := d.Open(t.Context(), stays.info.Session)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Store)
	logged(s, 1, 1)
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	if n := pageSize(t, s.path()); n != sqlite.UsualPage {
		t.Errorf("the pages have %d bytes in the next process", n)
	}
	want[stays.info.Session]++
	for session, n := range want {
		r, err := d.Verify(t.Context(), session)
		if err != nil || int(r.Events) != n || len(r.Missing)+len(r.Duplicate)+len(r.OutOfOrder) > 0 {
			t.Errorf("%s has %d events of %d: %+v, %v", session, r.Events, n, r, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
