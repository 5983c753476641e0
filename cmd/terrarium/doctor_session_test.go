package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestNeeds compares what sessions need with machines that have enough, and with machines that
// do not.
func TestNeeds(t *testing.T) {
	newest := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	saved := []journal.SavedGraph{
		{Session: "a", Creatures: make([]journal.CreatureRow, 3), LastTime: newest.UnixNano()},
		{Session: "b", Creatures: make([]journal.CreatureRow, 1), LastTime: newest.Add(-time.Hour).UnixNano()},
	}
	enough := directoryRecord{FreeBytes: 1 << 40, FreeInodes: 1 << 20, OpenFiles: 1024}
	plenty := memoryRecord{1 << 30, 1 << 29, -1}
	var got strings.Builder
	for _, c := range []struct {
		what   string
		graphs []journal.SavedGraph
		memory memoryRecord
		disk   directoryRecord
		now    time.Time
	}{
		{"enough", saved, plenty, enough, newest},
		{"nothing is known", saved, memoryRecord{-1, -1, -1}, directoryRecord{FreeBytes: -1, FreeInodes: -1, OpenFiles: -1}, newest},
		{"an empty directory", nil, plenty, enough, time.Unix(0, 0)},
		{"few files", saved, plenty, directoryRecord{FreeBytes: -1, FreeInodes: -1, OpenFiles: 40}, newest},
		{"a full disk", saved, plenty, directoryRecord{FreeBytes: 1 << 20, FreeInodes: 1, OpenFiles: -1}, newest},
		{"little memory", saved, memoryRecord{1 << 30, 32 << 20, -1}, enough, newest},
		{"a limit of memory", saved, memoryRecord{1 << 30, 1 << 29, 16 << 20}, enough, newest},
		{"a clock at 1970", saved, plenty, enough, time.Unix(7, 0)},
		{"a clock that differs by little", saved, plenty, enough, newest.Add(-behind)},
	} {
		r := needsOf(c.graphs)
		fmt.Fprintf(&got, "%s: %d graphs, %d creatures, %d files, %d bytes, %s\n", c.what, r.Graphs, r.Creatures, r.OpenFiles, r.MemoryBytes, r.NewestEvent)
		for _, w := range append(c.disk.spaceWarnings(), r.warnings(&c.memory, &c.disk, c.now)...) {
			fmt.Fprintf(&got, "  %s: %s\n    %s\n", w.Code, w.Message, w.Remedy)
		}
	}
	golden := filepath.Join("testdata", "needs.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
}

// TestWeakDiskOfSavedSession warns of a saved session that is brought back later.
func TestWeakDiskOfSavedSession(t *testing.T) {
	dir := t.TempDir()
	open := func() *terrarium.Terrarium {
		x, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir, Durability: terrarium.Full, NoSearchIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := open()
	added, err := x.AddCreature(t.Context(), terrarium.CreatureSpec{Name: "a", Module: "builtin:echo"})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	x = open()
	warned := 0
	memory := fstest.MapFS{"proc/self/mountinfo": {Data: []byte("1 1 0:2 / / rw - rootfs rootfs rw\n")}}
	stop := tellWeakDisk(t.Context(), memory, dir, x, func(string, string) { warned++ })
	if _, _, err := x.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := x.SendTo(t.Context(), added.Creature, terrarium.Outgoing{Payload: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := x.Close(t.Context()); err != nil || warned != 1 {
		t.Errorf("%d warnings, %v", warned, err)
	}
}

// TestWeakDisk warns of a disk that does not keep the durability full, if a session has it.
func TestWeakDisk(t *testing.T) {
	disk := func(mount string) fstest.MapFS {
		return fstest.MapFS{"proc/self/mountinfo": {Data: []byte("1 1 8:1 / / " + mount + "\n")}}
	}
	for _, c := range []struct {
		durability terrarium.Durability
		mount      string
		want       string
	}{
		{terrarium.Full, "rw - ext4 /dev/sda1 rw", ""},
		{terrarium.Full, "rw - ext4 /dev/sda1 rw,data=writeback", "data=writeback"},
		{terrarium.Full, "rw - vfat /dev/sda1 rw", "no journal"},
		{terrarium.Normal, "rw - vfat /dev/sda1 rw", ""},
	} {
		dir := t.TempDir()
		x, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir, Durability: c.durability, NoSearchIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		var early, got []string
		stop := tellWeakDisk(t.Context(), disk(c.mount), dir, x, func(message, remedy string) { early = append(early, message+": "+remedy) })
		for range 2 {
			if _, err := x.AddCreature(t.Context(), terrarium.CreatureSpec{Name: "a", Module: "builtin:echo"}); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		tellWeakDisk(t.Context(), disk(c.mount), dir, x, func(message, remedy string) { got = append(got, message+": "+remedy) })()
		if d := cmp.Diff(got, early); d != "" {
			t.Errorf("of later sessions: %s", d)
		}
		if (len(got) > 0) != (c.want != "") || c.want != "" && !strings.Contains(got[0], c.want) || len(got) > 1 {
			t.Errorf("%v, %s: %q", c.durability, c.mount, got)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
