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

// TestInterruptedOpening opens a directory for a caller that no longer waits. The error is that
// of the context, and no file is moved.
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
		t.Errorf("the directory had the files %v, but has %v", before, after)
	}
	loseCatalog(t, dir)
	if _, err := Rebuild(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("rebuilding: %v", err)
	}
}

// withoutLogs leaves out the files that an interrupted reader leaves: the next reader removes
// them.
func withoutLogs(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") })
}
