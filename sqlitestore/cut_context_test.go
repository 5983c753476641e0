package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"go.uber.org/goleak"
)

// TestCutEndsWithItsContext ends the context of a cut while the catalogue does not answer:
// before the cut has begun, while another change uses the catalogue, and when the cut is about
// to be made. Nothing has happened then, and the parent continues.
func TestCutEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	var filling atomic.Int32 // how many children are filled before the context ends
	ctx, cancel := context.WithCancel(t.Context())
	d, err := Open(t.Context(), t.TempDir(), smallChunks(func(p failpoint.Point, _ string) error {
		if p == failpoint.Filled && filling.Add(-1) == 0 {
			cancel()
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s := createStore(t, d)
	logged(s, 1, 10)

	d.changing.Lock()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := d.Cut(ended, splitOf(s)); !errors.Is(err, context.Canceled) {
		t.Errorf("Cut while another change is made: %v", err)
	}
	d.changing.Unlock()

	other, err := sqlite.Open(d.catalog.Path(), sqlite.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	filling.Store(2)
	if _, err := d.Cut(ctx, splitOf(s)); !errors.Is(err, context.Canceled) {
		t.Errorf("Cut while the catalogue is locked: %v", err)
	}
	logged(s, 11, 20)
	if err := s.Wait(t.Context(), 20); err != nil {
		t.Errorf("the parent does not continue: %v", err)
	}
	if err := errors.Join(other.Rollback(), other.Close()); err != nil {
		t.Fatal(err)
	}
	children, err := d.Cut(t.Context(), splitOf(s))
	if err != nil || len(children) != 2 {
		t.Fatalf("Cut: %d children, %v", len(children), err)
	}
	infos, err := d.Sessions(t.Context())
	if err != nil || len(infos) != 3 {
		t.Errorf("%d sessions, want the parent and its children; %v", len(infos), err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCutDoesNotWaitForARelease makes the disk hang while the catalogue records that the files
// of ended sessions are no longer needed.
func TestCutDoesNotWaitForARelease(t *testing.T) {
	var releasing atomic.Bool
	var first sync.Once
	hanging, goOn := make(chan struct{}), make(chan struct{})
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{
		Reached: func(p failpoint.Point, _ string) error {
			if p == failpoint.Releasing {
				releasing.Store(true)
			}
			return nil
		},
		Synced: func(path string) error {
			if filepath.Base(path) == catalog.Name+"-wal" && releasing.Load() {
				first.Do(func() { close(hanging) })
				<-goOn
			}
			return nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := createStore(t, d)
	logged(s, 1, 10)
	halves, err := d.Cut(t.Context(), splitOf(s))
	if err != nil {
		t.Fatal(err)
	}
	<-hanging
	patient, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err = d.Cut(patient, splitOf(halves[0].(*Store)))
	close(goOn)
	if err != nil {
		t.Errorf("Cut during the release: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
