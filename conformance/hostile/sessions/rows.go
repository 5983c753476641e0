package sessions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const unfitName = "names a file that cannot be a store"

// rows returns cases in which a row has impossible content.
func rows() []Case {
	out := []Case{
		{"next-place-huge", "searching: an index whose next place is a quintillion", search("UPDATE progress SET next = 1 << 60"), ""},
		{"run-negative", "searching: runs of events at negative places", search("UPDATE run SET first = -first, seq = 1 << 62"), ""},
		{"cursor-noise", "searching: a cursor that is noise", search("UPDATE progress SET cursor = 'e:zz!' || hex(randomblob(1000))"), ""},
		{"words-noise", "the reader of the index: its segments are noise", search("UPDATE word_segments SET block = randomblob(5000)", "UPDATE word_segdir SET root = randomblob(5000)"), ""},
		{"short-origin", "ids: an origin of three bytes", store("UPDATE origin SET uuid = x'010203'"), "origin"},
		{"text-origin", "ids: an origin that is text", func(ctx context.Context, d Directory) error {
			path, err := d.Store()
			if err != nil {
				return err
			}
			return loosen(ctx, path, "UPDATE origin SET uuid = 'sixteen letters!'")
		}, "origin"},
		{"short-origin-of-session", "ids: an origin of three bytes in the catalogue", catalog("INSERT INTO origin SELECT session, x'010203', 1 FROM store LIMIT 1"), ""},
		{"live-is-text", "the listing: live is text", func(ctx context.Context, d Directory) error {
			return loosen(ctx, d.Catalog(), "UPDATE store SET live = 'x'")
		}, "should be an integer"},
		{"meta-is-list", "the listing: metadata that is not an object", catalog("UPDATE store SET meta = '[1]'"), "metadata"},
		{"own-parent", "the lineage: a session that is its own parent", catalog("INSERT OR REPLACE INTO parent SELECT session, 0, session FROM store", "UPDATE store SET complete = 0"), ""},
		{"ring-of-parents", "the lineage: a hundred sessions in a ring", ring, ""},
		{"huge-value", "memory: metadata of 129 MiB", store(fmt.Sprintf("INSERT INTO meta VALUES ('huge', CAST(zeroblob(%d) AS TEXT))", 129<<20)), "larger than any"},
		{"huge-key", "memory: the name of a file of 1 MB", catalog("INSERT INTO leftover VALUES (hex(zeroblob(500000)) || '.db')"), unfitName},
		{"session-traverses", "names of files made of ids: a session called ../../outside/x", catalog("UPDATE parent SET child = '../../outside/x'", "UPDATE store SET session = '../../outside/x', complete = 0"), "cannot be the id of a session"},
		{"session-traverses-in-store", "rebuilding: a store that names a session with a path", func(ctx context.Context, d Directory) error {
			if err := os.Remove(d.Catalog()); err != nil {
				return err
			}
			return store("UPDATE store SET value = '../../outside/x' WHERE key = 'session'", "UPDATE ancestor SET session = '../../outside/x'")(ctx, d)
		}, "cannot be the id of a session"},
		{"numbers-at-the-end", "sums of numbers: times and numbers at the end of their range", store(
			"UPDATE cursor SET seq = 9223372036854775807", "UPDATE head SET seq = -1", "UPDATE event SET ts = 9223372036854775807, seq = -9223372036854775808", "UPDATE timer SET due = -9223372036854775808"), ""},
		{"kind-out-of-range", "conversions: events of kind 70,000", store("UPDATE event SET kind = 70000"), ""},
		{"copied-beyond", "copying: more has been copied than there is", func(ctx context.Context, d Directory) error { return unfinished(ctx, d, "copy.2.db", "", 1<<50) }, ""},
		{"copied-negative", "copying: a negative number of bytes has been copied", func(ctx context.Context, d Directory) error { return unfinished(ctx, d, "copy.2.db", "", -7) }, "negative"},
		{"copy-of-nothing", "copying: the source of the copy is missing", func(ctx context.Context, d Directory) error {
			return unfinished(ctx, d, "copy.2.db", "nothing.db", 0)
		}, ""},
		{"catalog-noise", "the reader of SQLite: pages of noise", func(ctx context.Context, d Directory) error { return noise(d.Catalog()) }, ""},
		{"store-noise", "the reader of SQLite: pages of noise", func(ctx context.Context, d Directory) error {
			path, err := d.Store()
			if err != nil {
				return err
			}
			return noise(path)
		}, ""},
	}
	for i, bad := range []string{"../../outside/notes.txt", "../../outside/notes.db", "/tmp/terrarium-hostile.db", "../catalog.db", "./x.db", "a\x1b[2Jb.db", " "} {
		out = append(out, Case{fmt.Sprintf("leftover-name-%d", i+1), fmt.Sprintf("the removal of leftover files: %q", bad), catalog("INSERT INTO leftover VALUES (" + quoted(bad) + ")"), unfitName})
		if i > 2 {
			continue // these are read in the same way
		}
		out = append(out,
			Case{fmt.Sprintf("store-name-%d", i+1), fmt.Sprintf("the file of a session: %q", bad), catalog("UPDATE store SET file = " + quoted(bad)), unfitName},
			Case{fmt.Sprintf("copy-name-%d", i+1), fmt.Sprintf("the file that is made: %q", bad), func(ctx context.Context, d Directory) error { return unfinished(ctx, d, bad, "", 0) }, unfitName},
			Case{fmt.Sprintf("base-name-%d", i+1), fmt.Sprintf("the file that is copied: %q", bad), func(ctx context.Context, d Directory) error { return unfinished(ctx, d, "copy.2.db", bad, 0) }, unfitName},
		)
	}
	return out
}

// unfinished records that the complete file of a session is being made.
func unfinished(ctx context.Context, d Directory, file, base string, copied int64) error {
	return execute(ctx, d.Catalog(), "UPDATE store SET complete = 0",
		fmt.Sprintf("INSERT INTO hydration SELECT %s, session, %s, %d FROM store LIMIT 1", quoted(file), quoted(base), copied))
}

// ring makes many ended sessions that are each other's parents in a ring, and
// the live session depends on them.
func ring(ctx context.Context, d Directory) error {
	const many = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) `
	return execute(ctx, d.Catalog(),
		"UPDATE store SET complete = 0",
		"INSERT OR REPLACE INTO parent SELECT session, 0, 'ring1' FROM store",
		"INSERT INTO store (session, graph, born, durability, live, complete, created, merged_at, split_at) "+many+"SELECT 'ring' || i, 'g', 0, 'normal', 0, 0, 0, 0, 0 FROM n",
		"INSERT INTO parent "+many+"SELECT 'ring' || i, 0, 'ring' || (i % 100 + 1) FROM n")
}

// noise overwrites everything after the first page of a file.
func noise(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	state := uint32(1)
	for i := 4096; i < len(content); i++ {
		state = state*1664525 + 1013904223
		content[i] = byte(state >> 24)
	}
	return os.WriteFile(filepath.Clean(path), content, 0o644)
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
