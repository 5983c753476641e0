package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/modules"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/internal/planstore"
	"github.com/seed47132306/terrarium/engine/internal/regroup"
	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Plan returns what [Engine.ApplyAll] would do with the deployments, and changes nothing.
// It returns the error that ApplyAll would return.
func (e *Engine) Plan(ctx context.Context, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	return e.plan(ctx, false, deployments)
}

// PlanResume returns what ApplyAll, followed by [Engine.Restore], would do, and changes nothing.
func (e *Engine) PlanResume(ctx context.Context, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	return e.plan(ctx, true, deployments)
}

func (e *Engine) plan(ctx context.Context, restores bool, deployments []*deploy.Deployment) (*diff.Plan, error) {
	p := &planning{restores: restores, o: Options{Host: e.core.host, Load: e.core.load, Durability: e.core.durability, Clock: e.core.clock, Capabilities: e.core.outbound.Kinds()}}
	l := e.core.rlock()
	if l.closed || e.core.isClosing() {
		l.runlock()
		return nil, errtext.Closed
	}
	for _, g := range l.sortedGraphs() {
		p.live = append(p.live, rowsOf(l, g))
	}
	p.running = l.settings()
	for _, d := range l.saved.Sorted() {
		p.saved = append(p.saved, planstore.OwnRows(*d)) // it may be brought back meanwhile
	}
	for name, d := range l.deployments {
		p.applied = append(p.applied, appliedDeployment{name, d})
	}
	p.problems = slices.Clone(l.problems)
	if e.core.storage != nil {
		p.archive, _ = e.core.storage.Storage.(journal.Archive)
	}
	l.runlock()
	return p.make(ctx, deployments)
}

// PlanSaved is [Engine.Plan] for saved graphs that the engine does not own: the options
// need a host and a loader of modules, and no storage. problems are the stores that could
// not be read. archive may be nil if the waiting deliveries cannot be read.
func PlanSaved(ctx context.Context, o Options, saved []journal.SavedGraph, problems []error, archive journal.Archive, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	return newPlanning(o, saved, problems, archive).make(ctx, deployments)
}

// PlanSavedResume is [Engine.PlanResume] for saved graphs that the engine does not own;
// see [PlanSaved].
func PlanSavedResume(ctx context.Context, o Options, saved []journal.SavedGraph, problems []error, archive journal.Archive, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	p := newPlanning(o, saved, problems, archive)
	p.restores = true
	return p.make(ctx, deployments)
}

func newPlanning(o Options, saved []journal.SavedGraph, problems []error, archive journal.Archive) *planning {
	return &planning{
		o: Options{Host: o.Host, Load: o.Load, Durability: o.Durability, Clock: o.Clock, Capabilities: o.Capabilities}, saved: saved, problems: problems, archive: archive,
	}
}

// planning is the making of one plan.
type planning struct {
	o        Options
	live     []journal.SavedGraph // of a running engine
	running  map[journal.CreatureID]settings
	saved    []journal.SavedGraph
	applied  []appliedDeployment
	problems []error
	archive  journal.Archive
	restores bool // members of no deployment are brought back, too
}

type appliedDeployment struct {
	name string
	*deploy.Deployment
}

// make applies the deployments to an engine of its own, in which nothing runs and whose storage
// keeps nothing, and compares the result. So a plan cannot differ from what Apply does.
func (p *planning) make(ctx context.Context, deployments []*deploy.Deployment) (plan *diff.Plan, err error) {
	before := slices.Concat(p.live, p.saved)
	stage := planstore.New(before, p.problems, p.archive)
	p.o.Storage = stage
	e, err := assemble(ctx, p.o)
	if err != nil {
		return nil, err
	}
	e.cancel = func() {}
	e.core.outbound.Close() // open requests are not executed
	defer func() {
		if cerr := e.Close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	if err := e.pretend(ctx, p); err != nil {
		return nil, err
	}
	if _, err := e.ApplyAll(ctx, deployments...); err != nil {
		return nil, err
	}
	if p.restores {
		if _, _, err := e.Restore(ctx); err != nil {
			return nil, err
		}
	}
	l := e.core.rlock()
	now := l.settings()
	l.runlock()
	after := e.rows()
	plan, ids := diff.Compare(before, after, diff.NewHidden(diff.SpecsOf(p.running, settings.of), diff.SpecsOf(now, settings.of)))
	plan.Declared, plan.Problems = p.declared(before, deployments), slices.Concat(p.problems, e.staying())
	reached, err := stage.Outside(ctx, p.saved, after, func(id journal.CreatureID) (map[string]*outbound.Access, bool, bool) {
		_, absent := now[id].module.(modules.Absent) // it is not brought back, or is running
		return now[id].outside, len(now[id].spec.Secret) > 0, !absent && now[id].module != nil
	})
	plan.Outside = append(diff.Connectors(deployments), reached...)
	return plan, errors.Join(err, stage.Letters(ctx, plan, ids))
}

// declared compares with what was declared: the engine knows that of a running
// deployment, and the stores remember that of any other.
func (p *planning) declared(graphs []journal.SavedGraph, deployments []*deploy.Deployment) []diff.DeclarationPlan {
	before, existing := storemeta.DeclaredIn(graphs), map[string]bool{}
	for i := range graphs {
		maps.Copy(existing, storemeta.MembersIn(&graphs[i]))
	}
	for _, a := range p.applied {
		before[a.name], existing[a.name] = a.Declared, true
	}
	return diff.CompareDeclared(before, existing, deployments)
}

func (s settings) of() *deploy.CreatureSpec { return &s.spec }

// settings returns the settings of all creatures.
func (e locked) settings() map[journal.CreatureID]settings {
	out := make(map[journal.CreatureID]settings, len(e.creatures))
	for id, c := range e.creatures {
		s := c.settings
		s.proved = c.starts.Load()
		out[id] = s
	}
	return out
}

// staying returns, for each creature brought back that stays stopped, the reason.
func (e *Engine) staying() (out []error) {
	l := e.core.rlock()
	defer l.runlock()
	for _, id := range l.topo.Creatures() {
		if c := l.creatures[id]; c.huskReason != nil {
			out = append(out, c.huskReason)
		}
	}
	return out
}

// pretend brings back graphs that run in another engine. Their creatures have their modules
// there, and sensitive attributes and settings, which no row has.
func (e *Engine) pretend(ctx context.Context, p *planning) error {
	l := e.core.lock()
	defer l.unlock()
	for _, a := range p.applied {
		l.deployments[a.name] = a.Deployment
		l.putPolicy(a.name, a.Policy)
		l.stops.Put(a.name, a.StopWhen)
	}
	w := &waking{e: l}
	for i := range p.live {
		err := w.bringBack(ctx, l.saved[p.live[i].Graph], func(_ context.Context, row journal.CreatureRow) (*creature, error) {
			c := newHusk(row)
			c.husk, c.stopped, c.spec.Stopped = false, row.Stopped, row.Stopped
			s := p.running[row.ID]
			c.spec.Config, c.spec.Secret, c.spec.Capabilities = s.spec.Config, s.spec.Secret, s.spec.Capabilities
			c.starts.Store(s.proved)
			return c, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rows returns the graphs of the engine as a storage would save them, and the saved ones.
func (e *Engine) rows() []journal.SavedGraph {
	l := e.core.rlock()
	defer l.runlock()
	var out []journal.SavedGraph
	for _, g := range l.sortedGraphs() {
		out = append(out, rowsOf(l, g))
	}
	return append(out, regrow.Rows(l.saved.Sorted())...)
}

// rowsOf are the live rows of a graph.
func rowsOf(e locked, graph *graph) journal.SavedGraph {
	g := graph.enter()
	defer g.leave()
	info, _ := e.topo.Graph(g.id)
	x := newChange(e, "plan", draft.Options{}) // only reads, and is never applied
	x.sealed = x.Seal()
	x.paused[graph] = g
	rec := x.firstRecord(&storeGroup{Group: &regroup.Group{After: []journal.GraphID{g.id}}, before: []section{g}}, info, g.origin)
	out := journal.SavedGraph{
		Session: journal.SessionID(g.id), Graph: g.id, Born: g.born, Durability: g.durability,
		Creatures: rec.Creatures, Channels: rec.Channels, Heads: rec.Heads, Edges: rec.Edges,
		Cursors: rec.Cursors, Timers: rec.Timers, Requests: rec.Requests, Wires: rec.Wires, Meta: g.spent.Meta(g.memory.Meta(g.meta)), LastTime: g.now,
	}
	if g.store != nil {
		out.Session = g.store.Info().Session
	}
	return out
}
