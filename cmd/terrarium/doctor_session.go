package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// What a process needs, measured on linux/amd64 with the interpreter and with the compiler:
// by itself, for each graph with a store, and for each creature before its first turn.
const (
	processFiles, graphFiles                   = 32, 6
	openGraphs                                 = 48 // those with an open store; the others are opened when they are used
	processMemory, graphMemory, creatureMemory = 40 << 20, 1 << 20, 64 << 10
	fewInodes, fewBytes                        = 1000, 64 << 20
	behind                                     = time.Second // by which clocks differ anyway
)

// sessionRecord is what the live sessions of the directory need at least.
type sessionRecord struct {
	Graphs      int    `json:"graphs"`
	Creatures   int    `json:"creatures"`
	OpenFiles   int64  `json:"open_files"`
	MemoryBytes int64  `json:"memory_bytes"`
	NewestEvent string `json:"newest_event,omitempty"` // its time

	newest  time.Time // zero: none
	session journal.SessionID
}

// examineSession reads what a directory keeps, if it is a session directory.
func (d *diagnosis) examineSession(ctx context.Context, dir string, now time.Time) {
	if _, err := os.Stat(filepath.Join(dir, "catalog.db")); errors.Is(err, os.ErrNotExist) {
		return
	}
	var graphs []journal.SavedGraph
	err := withView(ctx, dir, func(v *sqlitestore.View) (err error) {
		var problems []error
		if graphs, problems, err = v.Live(ctx); err != nil {
			return err
		}
		for _, p := range problems {
			d.Warnings = append(d.Warnings, operations.NewErrorRecord(p))
		}
		return nil
	})
	if err != nil {
		d.Problems = append(d.Problems, operations.NewErrorRecord(err))
		return
	}
	d.Session = needsOf(graphs)
	d.Warnings = append(d.Warnings, d.Session.warnings(&d.Memory, &d.Directory, now)...)
}

// needsOf adds up what graphs need.
func needsOf(graphs []journal.SavedGraph) *sessionRecord {
	r := &sessionRecord{Graphs: len(graphs)}
	var newest int64
	for i := range graphs {
		r.Creatures += len(graphs[i].Creatures)
		if graphs[i].LastTime > newest {
			newest, r.session = graphs[i].LastTime, graphs[i].Session
		}
	}
	r.OpenFiles = processFiles + graphFiles*min(int64(r.Graphs), openGraphs)
	r.MemoryBytes = processMemory + graphMemory*int64(r.Graphs) + creatureMemory*int64(r.Creatures)
	if newest > 0 {
		r.newest = time.Unix(0, newest).UTC()
		r.NewestEvent = r.newest.Format(time.RFC3339)
	}
	return r
}

// warnings compares what the sessions need with what the process may have, and the clock with the newest
// event.
func (r *sessionRecord) warnings(m *memoryRecord, d *directoryRecord, now time.Time) (out []*operations.ErrorRecord) {
	warn := func(code abi.Code, message, remedy string) {
		out = append(out, &operations.ErrorRecord{Code: code.String(), Message: message, Remedy: remedy})
	}
	has := fmt.Sprintf("the sessions have %s with %s", count(int64(r.Graphs), "graph"), count(int64(r.Creatures), "creature"))
	if d.OpenFiles >= 0 && d.OpenFiles < r.OpenFiles {
		warn(abi.LimitExceeded, fmt.Sprintf("%s, which need about %s; the process may have %d", has, count(r.OpenFiles, "open file"), d.OpenFiles),
			"raise the limit: ulimit -n, or LimitNOFILE of systemd")
	}
	memory := m.AvailableBytes
	if m.LimitBytes >= 0 && (memory < 0 || m.LimitBytes < memory) {
		memory = m.LimitBytes
	}
	if memory >= 0 && memory < r.MemoryBytes {
		warn(abi.LimitExceeded, fmt.Sprintf("%s, which need at least about %s of memory; the process may have %s", has, size(r.MemoryBytes), size(memory)),
			"raise the limit of the control group, or use a machine with more memory")
	}
	if now.Add(behind).Before(r.newest) {
		warn(abi.Unavailable, fmt.Sprintf("the clock says %s, and the newest event of session %s is from %s: the clock is wrong now, or it was when the event was written",
			now.UTC().Format(time.RFC3339), r.session, r.NewestEvent),
			"set the clock before the session continues; until then, the times of new events continue from the newest one")
	}
	return out
}

// tellWeakDisk warns if a session of the durability full is on a disk on which a power failure
// can lose acknowledged data. It warns once: now, or when the first such session begins.
// system has the files of the system. stop waits until all graphs that began before its call
// have been judged.
func tellWeakDisk(ctx context.Context, system fs.FS, dir string, t *terrarium.Terrarium, warn func(message, remedy string)) (stop func()) {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return func() {}
	}
	disk := fileSystemOf(system, real(abs))
	warnings := disk.warnings()
	if len(warnings) == 0 {
		return func() {}
	}
	// New graphs have the first of these events, and saved ones that are brought back the second.
	sub := t.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTopologyChanged, journal.EventInstanceStarted}}, 0)
	told := func(graph terrarium.GraphID) bool {
		if !keepsFully(t, graph) {
			return false
		}
		sub.Close()
		warn("the durability full does not hold: "+warnings[0].Message, warnings[0].Remedy)
		return true
	}
	if told("") {
		return func() {}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		var last terrarium.GraphID
		for ob := range sub.All(context.WithoutCancel(ctx)) { // until it is closed
			graph := ob.Event.Graph // none if events were left out
			if graph != "" && graph == last {
				continue // a graph keeps its durability
			}
			if last = graph; told(graph) {
				return
			}
		}
	})
	return func() {
		sub.Close()
		watching.Wait()
	}
}

// keepsFully reports whether a graph, or any if none is named, has the durability full.
func keepsFully(t *terrarium.Terrarium, graph terrarium.GraphID) bool {
	graphs, err := t.Status(graph)
	if err != nil {
		return false // it is part of another one, which has its own event
	}
	for i := range graphs {
		if graphs[i].Durability == journal.Full.String() {
			return true
		}
	}
	return false
}
