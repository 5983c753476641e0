package sqlitestore_test

import (
	"context"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

func TestStorage(t *testing.T) {
	t.Parallel()
	open := func(t storetest.T, dir string) journal.Storage {
		// Nothing here depends on syncs, which would take most of the time.
		t.Cleanup(losevfs.Mount(dir, 0).Unmount)
		d, err := sqlitestore.Open(t.Context(), dir, sqlitestore.WithoutSyncs)
		if err != nil {
			t.Fatal(err)
		}
		return pruning{d}
	}
	for i, c := range storetest.Checks() {
		if seeded.Part(i, 3) {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, open) })
		}
	}
}

// pruning is a directory that the test suite can prune.
type pruning struct{ *sqlitestore.Directory }

func (p pruning) KeepNewest(ctx context.Context, session journal.SessionID, events int64) error {
	_, err := p.Prune(ctx, session, sqlitestore.Retention{Events: events})
	return err
}
