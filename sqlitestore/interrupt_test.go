package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestInterruptedOpening opens a directory for a caller that waits no more. What could
// not be read is not taken for anything, and nothing is moved.
func TestInterruptedOpening(t *testing.T) {
	dir, paths := filled(t, 2)
	replace(t, filepath.Join(dir, files.Stores, "copy"+files.StoreSuffix), paths[0])
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
