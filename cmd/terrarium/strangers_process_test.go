package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/conformance/hostile/sessions"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
)

// TestStrangersSessionsFromOutside has processes of their own open the directories of
// the gallery, as a user does: each directory meets two commands, and each command some
// of each kind of attack.
func TestStrangersSessionsFromOutside(t *testing.T) {
	sound := soundSession(t)
	for i, c := range sessions.Cases() {
		if !seeded.Part(i, strangersPart) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Says = "" // by which command it is said, TestStrangersSessions knows
			attackWith(t, processOn, sound, c, []command{takingTurns(i), takingTurns(i + 8)})
		})
	}
}

// processOn runs a command line in a process of its own.
func processOn(t *testing.T, d sessions.Directory, session string, c command) (code int, out, said string) {
	t.Helper()
	cmd := exec.Command("terrarium", c.on(t, d, session)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.input), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(strangerPatience, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	_ = cmd.Wait() // the exit code tells
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// TestSignalWhileReading ends processes that read a catalogue whose lineage takes
// minutes to follow, though nothing is wrong with its layout.
func TestSignalWhileReading(t *testing.T) {
	sound := soundSession(t)
	db := sqlitetest.Open(t, sound.Catalog())
	db.SetMaxOpenConns(1) // which has the temporary table
	for _, query := range []string{
		`CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 40000) SELECT n FROM n`,
		`INSERT INTO store (session, graph, born, durability, live, complete, created, merged_at, split_at)
			SELECT printf('s%06d', n), 'g', 1, 'normal', 0, 1, n, 0, 0 FROM n`,
		`INSERT INTO parent (child, ordinal, parent) SELECT printf('s%06d', n), 0, printf('s%06d', n - 1) FROM n WHERE n > 1`,
	} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		{"session", "list", "DIR"}, {"session", "lineage", "DIR", "s040000"}, {"session", "show", "DIR"},
		{"exec", "--session", "DIR"}, {"run", "RECIPE", "--session", "DIR"}, {"resume", "DIR"},
	} {
		t.Run(strings.Join(line[:2], " "), func(t *testing.T) {
			t.Parallel()
			d := sessions.Directory{Path: filepath.Join(t.TempDir(), "s")}
			if err := os.CopyFS(d.Path, os.DirFS(sound.Path)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(d.Catalog() + "-shm"); err == nil {
				t.Fatal("something has the catalogue open")
			}
			p := start(t, t.TempDir(), command{line: line}.on(t, d, "")...)
			if line[0] == "exec" {
				if _, err := p.in.Write([]byte(`{"op":"sessions"}` + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			for { // until it has the catalogue open
				if _, err := os.Stat(d.Catalog() + "-shm"); err == nil {
					break
				}
				if time.Since(began) > deadline {
					t.Fatal("it does not open the catalogue")
				}
				time.Sleep(time.Millisecond)
			}
			code := p.signal(syscall.SIGTERM)
			if ended, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ended.Signaled() { // as a command ends that only reads
				code = exitInterrupted(ended.Signal())
			}
			if code != exitInterrupted(syscall.SIGTERM) {
				t.Errorf("exit code %d\n%s", code, p.stderr)
			}
		})
	}
}
