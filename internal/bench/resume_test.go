package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the reference reads with it

	"github.com/seed47132306/terrarium"
)

// The sizes of the session that BenchmarkResume resumes.
const (
	resumedCreatures = 100
	resumedEvents    = 1_000_000
)

// resumable makes a session of a hundred creatures with a million events.
func resumable(b *testing.B) (dir string) {
	b.Helper()
	ctx := context.Background()
	dir = b.TempDir()
	recipe := filepath.Join(dir, "crowd.hcl")
	var text strings.Builder
	text.WriteString("channel \"lines\" {}\n")
	for i := range resumedCreatures {
		fmt.Fprintf(&text, "creature \"c%d\" {\n  module = \"builtin:tally\"\n  listen = [channel.lines]\n  config = { key = \"field:1\" }\n}\n", i)
	}
	if err := os.WriteFile(recipe, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	dir = filepath.Join(dir, "S")
	t := want(terrarium.New(ctx, terrarium.Options{Dir: dir}))
	applied := want(t.Apply(ctx, recipe, terrarium.RecipeOptions{}))
	lines := applied.Channels["channel.lines"]
	for sent := 0; ; sent++ {
		if sent%500 == 0 {
			if err := t.WaitIdle(ctx); err != nil {
				b.Fatal(err)
			}
			if want(t.Sessions(ctx))[0].Events >= resumedEvents {
				break
			}
		}
		want(t.Send(ctx, lines, terrarium.Outgoing{Payload: []byte("frog")}))
	}
	if err := t.Close(ctx); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkResume opens a session directory and resumes everything, until the
// creatures may run; the reference reads the same rows with bare SQLite.
func BenchmarkResume(b *testing.B) {
	ctx := context.Background()
	dir := resumable(b)
	b.Run("terrarium", func(b *testing.B) {
		for b.Loop() {
			t := want(terrarium.New(ctx, terrarium.Options{Dir: dir}))
			resumed := want(t.Resume(ctx, terrarium.ResumeOptions{}))
			b.StopTimer()
			if n := len(resumed.Applied[0].Resumed); n != resumedCreatures {
				b.Fatalf("%d creatures go on", n)
			}
			if err := t.Close(ctx); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("sqlite", func(b *testing.B) {
		for b.Loop() {
			if n := readRows(b, dir); n < resumedCreatures {
				b.Fatalf("%d rows", n)
			}
		}
	})
}

// readRows reads all live rows of the stores of a directory.
func readRows(b *testing.B, dir string) (n int) {
	b.Helper()
	for _, path := range want(filepath.Glob(filepath.Join(dir, "stores", "*.db"))) {
		db := want(sql.Open("sqlite3", path))
		for _, table := range []string{"creature", "channel", "head", "edge", "cursor", "producer", "timer", "wire", "request", "meta"} {
			rows := want(db.Query("SELECT * FROM " + table))
			columns := want(rows.Columns())
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			for rows.Next() {
				if err := rows.Scan(values...); err != nil {
					b.Fatal(err)
				}
				n++
			}
			rows.Close()
		}
		db.Close()
	}
	return n
}

// want returns a value whose error must be nil.
func want[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
