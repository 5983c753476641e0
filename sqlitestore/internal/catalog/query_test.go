package catalog

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// TestEndlessQueries has queries of a catalogue that never end, before and behind their
// first row. They end with the context of the caller.
func TestEndlessQueries(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	if err := Make(path, failpoint.Hooks{Unsynced: true}); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.Open(path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Look(c)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
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
	if _, err := k.Entries(t.Context()); err != nil {
		t.Errorf("the next query: %v", err)
	}
}
