package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEndlessQueries has queries of a catalogue that never end, before and behind their
// first row. They end with the context of the caller.
func TestEndlessQueries(t *testing.T) {
	dir, _ := filled(t, 1)
	k := mustView(t, dir).catalog
	const numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT "
	for _, what := range []string{"n FROM n", "count(*) FROM n"} {
		ctx, cancel := context.WithCancel(t.Context())
		if strings.HasPrefix(what, "count") {
			go cancel() // before the query, or while it runs
		}
		err := k.query(ctx, numbers+what, nil, func([]driver.Value) error {
			cancel()
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := k.entries(t.Context()); err != nil {
		t.Errorf("the next query: %v", err)
	}
}

// TestInterruptedOpening opens a directory for a caller that waits no more. What could
// not be read is not taken for anything, and nothing is moved.
func TestInterruptedOpening(t *testing.T) {
	dir, paths := filled(t, 2)
	replace(t, filepath.Join(dir, storesName, "copy"+storeSuffix), paths[0])
	before := withoutLogs(tree(t, dir))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, dir, Options{})
	_, readErr := OpenReadOnly(ctx, dir)
	for what, err := range map[string]error{"opening": err, "reading": readErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := withoutLogs(tree(t, dir)); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("it had %v, and has %v", before, after)
	}
	loseCatalog(t, dir)
	if _, err := Rebuild(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("rebuilding: %v", err)
	}
}

// withoutLogs leaves out what a reader makes that is interrupted: the next one removes it.
func withoutLogs(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") })
}
