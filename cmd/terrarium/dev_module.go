package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/project"
	"github.com/seed47132306/terrarium/cmd/internal/watch"
	"github.com/seed47132306/terrarium/engine/journal"
)

// devModule is a module that the recipe names.
type devModule struct {
	path    string
	sum     watch.Sum        // of the files from which it was last made
	project *project.Project // its source; nil if another tool makes it
	newest  []byte           // nil until there is one
	running []byte           // what its creatures run or, before they do, what was in its file
	refused bool             // newest does not repeat the recorded turns
	stopped int              // how many builds in a row were stopped by an edit
}

// maxStopped bounds how many builds in a row are stopped because the source changes: a
// build that writes into its own source must come to an end.
const maxStopped = 3

// newDevModule returns a module in the state of its file.
func newDevModule(ctx context.Context, path string) *devModule {
	wasm, _ := terrarium.LoadModule(ctx, path) // nil if it has not been built yet
	return &devModule{path: path, newest: wasm, running: wasm}
}

// watched is what the module is made from.
func (m *devModule) watched() watch.Set {
	p, _ := m.source()
	if p == nil {
		return watch.Set{Files: []string{m.path}}
	}
	return p.Watched()
}

// source returns the project that builds the module; nil if the module is made otherwise,
// and then why, if its file does not exist.
func (m *devModule) source() (*project.Project, error) {
	p, err := project.Detect(filepath.Dir(m.path))
	if err == nil && (p.Name == "" || p.Name+".wasm" == filepath.Base(m.path)) {
		return p, nil
	}
	if _, missing := os.Stat(m.path); missing == nil {
		return nil, nil
	}
	if err == nil {
		err = m.misnamed(p.Name)
	}
	return nil, err
}

func (m *devModule) misnamed(name string) error {
	return &abi.Error{Code: abi.NotFound, Message: "the source in the folder of " + filepath.Base(m.path) + " builds " + name + ".wasm",
		Remedy: "name that module in the recipe", IDs: map[string]string{"path": m.path}}
}

// wanted returns the bytes that creatures are to run.
func (m *devModule) wanted() []byte {
	if m.refused {
		return m.running
	}
	return m.newest
}

func (m *devModule) sha256() string {
	sum := sha256.Sum256(m.running)
	return hex.EncodeToString(sum[:])
}

// build makes the newest version of a module. It reports whether that differs from the
// version before. An error has already been shown.
func (d *developing) build(ctx context.Context, m *devModule) (changed bool, err error) {
	var output string
	p, err := m.source()
	switch {
	case err != nil:
	case p == nil:
		wasm, rerr := terrarium.LoadModule(ctx, m.path)
		changed, err = !bytes.Equal(wasm, m.newest), rerr
		if err == nil {
			m.newest, m.refused = wasm, m.refused && !changed
		}
		if changed && err == nil {
			d.tell(&devEvent{Event: eventBuilt, Module: m.path, Bytes: len(wasm)})
		}
		return changed, d.shown(ctx, m, "", err)
	default:
		var built *project.Built
		var edited bool
		if built, edited, err = d.make(ctx, m, p); edited {
			m.sum = watch.Sum{} // the next round builds what is there now
			d.watcher.Again()
			return false, nil
		}
		if built != nil {
			output = built.Output
		}
		if err == nil && built.Name+".wasm" != filepath.Base(m.path) {
			err = m.misnamed(built.Name)
		}
		if err == nil {
			changed = !bytes.Equal(built.Wasm, m.newest)
			m.newest, m.refused = built.Wasm, m.refused && !changed
			d.tell(&devEvent{Event: eventBuilt, Module: m.path, Language: p.Language.Title, Bytes: len(built.Wasm), Unchanged: !changed, Output: output})
		}
	}
	m.project = p
	return changed, d.shown(ctx, m, output, err)
}

// make builds a module. It stops, and reports edited, if the source changes meanwhile.
func (d *developing) make(ctx context.Context, m *devModule, p *project.Project) (built *project.Built, edited bool, err error) {
	building, stop := context.WithCancel(ctx)
	done := make(chan bool, 1)
	var other bool // something else has changed
	go func() {
		defer close(done)
		for {
			select {
			case <-building.Done():
				return
			case <-d.watcher.Changed():
				other = true
				if sum, _, err := m.watched().Sum(); err == nil && sum != m.sum && m.stopped < maxStopped {
					done <- true
					stop()
					return
				}
			}
		}
	}()
	built, err = p.Build(building, project.Options{Debug: d.f.debug})
	stop()
	edited = <-done
	if other {
		d.watcher.Again()
	}
	if edited = edited && ctx.Err() == nil && err != nil; edited {
		m.stopped++
	} else {
		m.stopped = 0
	}
	return built, edited, err
}

// shown shows why a module was not built.
func (d *developing) shown(ctx context.Context, m *devModule, output string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if d.ends(err) {
		d.tellOutput(output)
		return failWith(exitFailed, err)
	}
	d.tell(&devEvent{Event: eventBuildFailed, Module: m.path, Output: output, cause: err, keeps: m.newest != nil})
	return &exit{code: exitFailed, err: err, shown: true}
}

// check runs recorded turns on the new modules, if that is requested, and writes those that
// are accepted to their files. It returns them.
func (d *developing) check(ctx context.Context, built []*devModule) (accepted []*devModule, err error) {
	for _, m := range built {
		failed := failWith(exitFailed, d.checkModule(ctx, m))
		if failed == nil && m.project != nil {
			failed = writeModule(m.path, m.newest)
		}
		if failed != nil {
			m.refused = true
			err = errors.Join(err, d.refuse(ctx, failed, m.path))
			continue
		}
		accepted = append(accepted, m)
	}
	return accepted, err
}

// checkModule runs recorded turns of the creatures that have a module on its newest version.
func (d *developing) checkModule(ctx context.Context, m *devModule) error {
	if d.f.turns == 0 || bytes.Equal(m.running, m.newest) {
		return nil
	}
	creatures, err := d.creaturesWith(m.path)
	if err != nil {
		return err
	}
	for _, c := range creatures {
		report, err := d.x.t.CheckModule(ctx, c.ID, m.newest, d.f.turns, true)
		if err != nil {
			return err
		}
		d.tell(&devEvent{Event: eventChecked, Module: m.path, Creature: c.Name, report: report})
		if !d.f.show && !report.Same() && report.Turns+report.Skipped() > 0 {
			return &abi.Error{Code: abi.Conflict, Message: c.Name + " does not repeat its recorded turns on the new module", Remedy: "correct the module, or run dev without --check if it is meant to differ",
				IDs: map[string]string{"creature": string(c.ID)}, Err: &terrarium.CheckFailed{Report: report}}
		}
	}
	return nil
}

// creaturesWith lists the creatures, running or saved, whose module has a path.
func (d *developing) creaturesWith(path string) (out []journal.CreatureRow, err error) {
	graphs, err := d.x.t.Status("")
	for i := range graphs {
		for _, c := range graphs[i].Creatures {
			if c.Module == path {
				out = append(out, journal.CreatureRow{ID: c.ID, Name: c.Name})
			}
		}
	}
	for _, g := range d.x.t.Saved() {
		for _, c := range g.Creatures {
			if c.Module == path {
				out = append(out, c)
			}
		}
	}
	return out, err
}

// lettersOf lists the dead letters to deliver again to a creature.
func (d *developing) lettersOf(ctx context.Context, id terrarium.CreatureID) (out []journal.EventID, graph terrarium.GraphID, err error) {
	graphs, err := d.x.t.Status("")
	for i := range graphs {
		for _, c := range graphs[i].Creatures {
			if c.ID == id {
				graph = graphs[i].ID
			}
		}
	}
	if graph == "" {
		return nil, "", err
	}
	var after journal.EventID
	for {
		page, err := d.x.t.DeadLetters(ctx, graph, id, after, 0)
		if err != nil || len(page) == 0 {
			return out, graph, err
		}
		for i := range page {
			if page[i].Time >= d.started.UnixNano() && page[i].Attempts > 0 {
				out = append(out, page[i].ID)
			}
		}
		if len(out) > redeliverAtMost {
			return slices.Clip(out[:redeliverAtMost]), graph, nil
		}
		after = page[len(page)-1].ID
	}
}
