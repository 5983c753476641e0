package catalog

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// TestNeedsOfVersion4 brings a catalogue up to date that has an incomplete session: it
// needs the files of its parents, as before, and nothing is described.
func TestNeedsOfVersion4(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), Name)
	c, err := sqlite.Open(path, sqlite.Create)
	if err != nil {
		t.Fatal(err)
	}
	err = Schema.Raise(ctx, c, 4)
	for _, row := range []string{
		"INSERT INTO cut (id, kind, at) VALUES ('x', 'merge', 2)",
		"INSERT INTO store VALUES (1, 'a', 'g', 0, 'normal', 0, 1, 1, 0, 0, NULL, 'x', 'a.db', '{}')",
		"INSERT INTO store VALUES (2, 'b', 'g', 0, 'normal', 0, 0, 1, 0, 0, NULL, 'x', 'b.db', '{}')",
		"INSERT INTO store VALUES (3, 'c', 'g', 0, 'normal', 1, 0, 2, 2, 0, 'x', NULL, 'c.db', '{}')",
		"INSERT INTO parent VALUES ('b', 0, 'a'), ('c', 0, 'b'), ('c', 1, 'a'), ('c', 2, 'volatile')",
	} {
		if err == nil {
			err = c.Exec(row)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Schema.Upgrade(ctx, path, failpoint.Hooks{Unsynced: true}); err != nil {
		t.Fatal(err)
	}
	k, err := Take(path, failpoint.Hooks{Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	needs, err := k.Needs(ctx, "c")
	if err != nil || !slices.Equal(needs, []journal.SessionID{"a", "b"}) {
		t.Errorf("c needs %v, %v", needs, err)
	}
	needed, err := k.Needed(ctx, "c")
	if err != nil || len(needed) != 2 {
		t.Errorf("c needs the files of %v, %v", needed, err)
	}
	for _, step := range []struct {
		sql  string
		free int
	}{
		{"INSERT INTO origin (session, uuid, highest) VALUES ('a', zeroblob(16), 1), ('b', zeroblob(16), 1)", 0},
		{"UPDATE cut SET firm = 1", 0},
		{"UPDATE store SET complete = 1 WHERE session = 'c'", 2},
		{"UPDATE store SET complete = 0 WHERE session = 'c'", 0},
		{"DELETE FROM need", 0}, // c needs files, and the catalogue does not say which
	} {
		if err := execIn(path, step.sql); err != nil {
			t.Fatal(err)
		}
		if free, err := k.Unneeded(ctx); err != nil || len(free) != step.free {
			t.Errorf("after %s, the files of %v are not needed; %v", step.sql, free, err)
		}
	}
	if described, err := k.Described(ctx); err != nil || len(described) > 0 {
		t.Errorf("%v are described, %v", described, err)
	}
}

func execIn(path, sql string) error {
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		return err
	}
	return errors.Join(c.Exec(sql), c.Close())
}
