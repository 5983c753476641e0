package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/watch"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/recipes"
)

// developing is one dev command. One goroutine at a time uses it.
type developing struct {
	f       *devFlags
	s       streams
	path    string // of the recipe
	x       *running
	watcher *watch.Watcher
	started time.Time

	modules map[string]*devModule // that the recipe names, by path
	files   []string              // that the recipe consists of or has consisted of
	sum     watch.Sum             // of the recipe, as it was last read
	pending bool                  // the recipe as it was last read has not been applied

	last       *recipes.Recipe // as it was last applied; nil: nothing runs
	deployment *deploy.Deployment
	applied    *terrarium.Applied
}

// begin builds and applies until the recipe runs.
func (d *developing) begin(ctx context.Context, x *running) ([]*terrarium.Applied, error) {
	d.x, d.started = x, time.Now()
	for {
		err := d.round(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, interrupted(ctx)
		case d.last != nil:
			d.f.tellOutputs(d.s, d.deployment)
			x.beside = d.loop
			return []*terrarium.Applied{d.applied}, nil
		case err != nil && (d.f.exitWhenIdle || isFinal(err)):
			return nil, err
		}
		if err != nil { // otherwise nothing of the recipe has changed
			d.tell(&devEvent{Event: eventWaiting})
		}
		if !d.await(ctx) {
			return nil, interrupted(ctx)
		}
	}
}

// isFinal reports whether no change of a file can remedy an error: a tool is missing, the
// command line is wrong, or a session directory cannot be used.
func isFinal(err error) bool {
	var e *exit
	return abi.CodeOf(err) == abi.Unavailable || errors.As(err, &e) && (e.code == exitUsage || e.code == exitSession)
}

// loop builds and applies after every change until ctx ends. It shows errors itself.
func (d *developing) loop(ctx context.Context) {
	for d.await(ctx) {
		_ = d.round(ctx)
	}
}

// await waits for a change. It reports false if ctx ends.
func (d *developing) await(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-d.watcher.Changed():
		return ctx.Err() == nil
	}
}

// round builds and applies what has changed since the last round. The error says why
// something does not run in its newest version. If the recipe runs already, the error has
// been shown.
func (d *developing) round(ctx context.Context) error {
	edited, sums, broken, err := d.readRecipe(ctx)
	if err != nil {
		return d.refuse(ctx, err, "")
	}
	var built []*devModule
	for _, m := range d.inOrder() {
		if sum := sums[m.path]; sum != m.sum {
			m.sum = sum
			changed, failed := d.build(ctx, m)
			if changed {
				built = append(built, m)
			}
			err = errors.Join(err, failed)
		}
	}
	if ctx.Err() != nil || len(built) == 0 && !edited || err != nil && d.ends(err) {
		return err
	}
	built, refused := d.check(ctx, built)
	if err = errors.Join(broken, err, refused); err != nil && d.ends(err) {
		return err
	}
	if d.pending && broken == nil && !d.lacks() {
		if failed := d.applyRecipe(ctx); d.last == nil || !errors.Is(failed, errRecipe) {
			return errors.Join(err, failed)
		}
	}
	if d.last == nil {
		return err
	}
	for _, m := range built {
		err = errors.Join(err, d.apply(ctx, d.last, d.withModules(d.deployment, m), m))
	}
	return err
}

// readRecipe reads which modules the recipe names, if it was edited. It returns the sums of
// what they are made from, and what is wrong with the recipe, which has been shown.
func (d *developing) readRecipe(ctx context.Context) (edited bool, sums map[string]watch.Sum, broken, err error) {
	var diags recipes.Diagnostics
	for {
		sum, sums, err := d.settle(ctx)
		if err != nil {
			return edited, nil, nil, err
		}
		if sum == d.sum {
			if diags.HasErrors() {
				broken = d.refuseRecipe(diags, "")
			}
			return edited, sums, broken, nil
		}
		// Reading it may show that it has other files. The next sum is theirs.
		d.sum, d.pending, edited = sum, true, true
		if diags, err = d.findModules(ctx); err != nil {
			return edited, nil, nil, err
		}
	}
}

// settleTime is how long files have to stay as they are before they are read. An editor may
// write a file in several steps.
const settleTime = 30 * time.Millisecond

// settle waits until the watched files have stopped changing, and returns the sums of the
// recipe and of what its modules are made from.
func (d *developing) settle(ctx context.Context) (recipe watch.Sum, sums map[string]watch.Sum, err error) {
	const most = 100 // a file that changes all the time
	for range most {
		before, was := recipe, sums
		var dirs, more []string
		recipe, dirs, err = d.recipeFiles().Sum()
		sums = map[string]watch.Sum{}
		for path, m := range d.modules {
			var failed error
			sums[path], more, failed = m.watched().Sum()
			dirs, err = append(dirs, more...), errors.Join(err, failed)
		}
		added, failed := d.watcher.Watch(dirs) // what is too large may be corrected
		if err = errors.Join(err, failed); err != nil {
			return recipe, nil, err
		}
		same := recipe == before && len(sums) == len(was)
		for path, sum := range sums {
			same = same && was[path] == sum
		}
		if same && !added {
			return recipe, sums, nil
		}
		select {
		case <-ctx.Done():
			return recipe, nil, context.Cause(ctx)
		case <-time.After(settleTime):
		}
	}
	return recipe, sums, nil
}

// recipeFiles are the files of the recipe, as far as they are known.
func (d *developing) recipeFiles() watch.Set {
	files := append(slices.Clone(d.files), d.f.varFiles...)
	more, err := recipesIn(d.path)
	if err != nil { // it is a file
		more = []string{d.path}
	}
	return watch.Set{Files: append(files, more...)}
}

// findModules reads the recipe to see which files and modules it has.
func (d *developing) findModules(ctx context.Context) (recipes.Diagnostics, error) {
	o, err := d.f.options()
	if err != nil {
		return nil, err
	}
	o.ShapeOnly = true
	r, diags := loadRecipe(ctx, d.path, o)
	if r == nil {
		for _, found := range diags { // the files of an incomplete recipe are not listed
			if found.Range.File != "" {
				d.addFile(found.Range.File)
			}
		}
		return diags, nil
	}
	deployment := r.Deployment()
	if d.last == nil { // nothing is built for a command line with a misspelt channel
		if err := d.f.checkChannels([]*deploy.Deployment{deployment}); err != nil {
			return nil, err
		}
	}
	d.addFiles(deployment)
	named := map[string]bool{}
	for i := range deployment.Creatures {
		named[deployment.Creatures[i].Module] = true
	}
	for i := range deployment.Species {
		named[deployment.Species[i].Spec.Module] = true
	}
	for path := range named {
		if path != "" && !strings.HasPrefix(path, terrarium.BuiltinPrefix) && d.modules[path] == nil {
			d.modules[path] = newDevModule(ctx, path)
		}
	}
	for path := range d.modules {
		if !named[path] {
			delete(d.modules, path)
		}
	}
	return nil, nil
}

// addFiles adds the files that a deployment was read from to those that are watched.
func (d *developing) addFiles(deployment *deploy.Deployment) {
	folder := deployment.Source.Path
	if _, err := recipesIn(folder); err != nil {
		folder = filepath.Dir(folder)
	}
	for _, name := range slices.Sorted(maps.Keys(deployment.Source.Files)) {
		d.addFile(filepath.Join(folder, filepath.FromSlash(name)))
	}
}

func (d *developing) addFile(path string) {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if !slices.Contains(d.files, path) && len(d.files) < maxRecipeFiles {
		d.files = append(d.files, path)
	}
}

// maxRecipeFiles bounds how many files of a recipe are watched. A file that the recipe no
// longer uses stays among them.
const maxRecipeFiles = 10_000

// lacks reports whether a module that the recipe names does not exist yet.
func (d *developing) lacks() bool {
	for _, m := range d.modules {
		if m.newest == nil {
			return true
		}
	}
	return false
}

// inOrder returns the modules in the order of their paths.
func (d *developing) inOrder() []*devModule {
	var list []*devModule
	for _, m := range d.modules {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *devModule) int { return strings.Compare(a.path, b.path) })
	return list
}

// applyRecipe applies the recipe with the newest modules.
func (d *developing) applyRecipe(ctx context.Context) error {
	o, err := d.f.options()
	if err != nil {
		return err
	}
	r, diags := loadRecipe(ctx, d.path, o)
	if r == nil {
		return d.refuseRecipe(diags, "")
	}
	if len(diags) > 0 {
		d.tell(&devEvent{Event: eventWarned, Recipe: d.path, Diagnostics: diags})
	}
	if err := d.f.checkChannels([]*deploy.Deployment{r.Deployment()}); err != nil {
		return d.refuse(ctx, err, "")
	}
	d.addFiles(r.Deployment())
	err = d.apply(ctx, r, d.withModules(r.Deployment(), d.inOrder()...), d.inOrder()...)
	d.pending = d.last != r
	return err
}

// withModules returns a deployment with the newest bytes of some modules, except for those
// that are refused.
func (d *developing) withModules(from *deploy.Deployment, modules ...*devModule) *deploy.Deployment {
	out := *from
	out.Creatures, out.Species = slices.Clone(from.Creatures), slices.Clone(from.Species)
	for _, m := range modules {
		for i := range out.Creatures {
			if out.Creatures[i].Module == m.path {
				out.Creatures[i].Wasm = m.wanted()
			}
		}
		for i := range out.Species {
			if out.Species[i].Spec.Module == m.path {
				out.Species[i].Spec.Wasm = m.wanted()
			}
		}
	}
	return &out
}

// apply applies a deployment with the wanted bytes of some modules.
func (d *developing) apply(ctx context.Context, r *recipes.Recipe, deployment *deploy.Deployment, modules ...*devModule) error {
	applied, err := d.x.t.ApplyDeployment(ctx, deployment)
	if err != nil {
		var module string
		if len(modules) == 1 {
			module = modules[0].path
		}
		if diags := r.Explain(err); len(diags) > 0 && ctx.Err() == nil {
			return d.refuseRecipe(diags, module)
		}
		return d.refuse(ctx, err, module)
	}
	ev := &devEvent{Event: eventApplied, Recipe: d.path, first: d.last == nil, Created: applied.Created}
	if !ev.first { // otherwise all of them have begun
		ev.Changed = applied.Changed
	}
	for _, gone := range applied.Removed {
		ev.Removed = append(ev.Removed, gone.Address)
	}
	d.last, d.deployment, d.applied = r, deployment, applied
	d.x.report.learn(applied)
	fresh := map[terrarium.CreatureID]bool{}
	for _, address := range ev.Changed {
		fresh[applied.Creatures[address]] = true
	}
	for _, m := range modules {
		if wasm := m.wanted(); !bytes.Equal(m.running, wasm) {
			m.running = wasm
			err = errors.Join(err, d.replaceOthers(ctx, m, ev, fresh))
		}
	}
	for id := range fresh {
		n, failed := d.redeliver(ctx, id)
		ev.Redelivered += n
		err = errors.Join(err, failed)
	}
	d.tell(ev)
	if err != nil {
		return d.refuse(ctx, err, "")
	}
	return nil
}

// replaceOthers replaces a module in creatures that the recipe does not declare, such as
// workers.
func (d *developing) replaceOthers(ctx context.Context, m *devModule, ev *devEvent, fresh map[terrarium.CreatureID]bool) error {
	graphs, err := d.x.t.Status("")
	for i := range graphs {
		for _, c := range graphs[i].Creatures {
			if c.Module != m.path || c.ModuleSHA256 == m.sha256() {
				continue
			}
			_, failed := d.x.t.ReplaceModule(ctx, c.ID, terrarium.ReplaceOptions{Module: m.path, Wasm: m.running})
			if abi.CodeOf(failed) == abi.NotFound {
				continue // it has ended
			}
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s continues with the former module: %w", c.Name, failed))
				continue
			}
			ev.Workers = append(ev.Workers, c.Name)
			fresh[c.ID] = true
		}
	}
	return err
}

// redeliverAtMost is the largest number of dead letters of a creature that are delivered
// again.
const redeliverAtMost = 10_000

// redeliver delivers the dead letters again that the failed turns of a creature have left
// since dev began.
func (d *developing) redeliver(ctx context.Context, id terrarium.CreatureID) (n int, err error) {
	list, graph, err := d.lettersOf(ctx, id)
	for _, letter := range list {
		if _, err := d.x.t.Redeliver(ctx, graph, letter); err != nil {
			return n, err
		}
		d.x.redelivered.Add(1)
		n++
	}
	return n, err
}
