package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// Plan is what applying deployments changes, address by address: the difference
// between what there is and what there will be.
type Plan struct {
	// Declared is what the recipes say besides, policies first. It tells what becomes of
	// each declaration, also that it stays.
	Declared  []DeclarationPlan
	Creatures []CreaturePlan
	Channels  []ChannelPlan
	// Graphs are those that merge, split, begin or end.
	Graphs []GraphPlan
	// Problems are the stores that cannot be read, see [Engine.Problems], and behind
	// them the creatures that will stay stopped, because no recipe declares them and
	// their modules are missing or cannot be used.
	Problems []error
}

// PlanAction is what becomes of a creature or a channel.
type PlanAction string

// The actions.
const (
	PlanResume PlanAction = "resume" // it goes on, perhaps changed
	PlanCreate PlanAction = "create"
	PlanRemove PlanAction = "remove"
)

// CreaturePlan is what becomes of one creature.
type CreaturePlan struct {
	Deployment string       `json:"deployment,omitempty"`
	Address    string       `json:"address,omitempty"` // empty for one that no recipe declares
	Name       string       `json:"name"`
	Creature   CreatureID   `json:"creature,omitempty"` // empty for one that does not exist yet
	Action     PlanAction   `json:"action"`
	Changes    []PlanChange `json:"changes,omitempty"`
	// Unknown are attributes of its configuration that are sensitive, so that no
	// store has what they were. They are set to what the recipe says, which may be
	// the same, and are not among the changes.
	Unknown []string `json:"unknown,omitempty"`
	// Cut says that its graph merges, splits or is rearranged.
	Cut bool `json:"cut,omitempty"`
	// Waiting is what it finds when it goes on; of one that goes, what it had.
	Waiting Waiting `json:"waiting,omitzero"`
	// Buried are the deliveries that become dead letters.
	Buried uint64 `json:"buried,omitempty"`
}

// Waiting is what waits for a creature.
type Waiting struct {
	Deliveries  uint64 `json:"deliveries,omitempty"`
	Timers      int    `json:"timers,omitempty"`
	Requests    int    `json:"requests,omitempty"` // that it has made and nobody has answered
	DeadLetters int    `json:"dead_letters,omitempty"`
}

// ChannelPlan is what becomes of one channel.
type ChannelPlan struct {
	Deployment string       `json:"deployment,omitempty"`
	Address    string       `json:"address,omitempty"`
	Name       string       `json:"name"`
	Channel    ChannelID    `json:"channel,omitempty"`
	Action     PlanAction   `json:"action"`
	Changes    []PlanChange `json:"changes,omitempty"`
	Messages   uint64       `json:"messages,omitempty"` // that it has had
}

// PlanChange is one thing that is different afterwards. An empty Before means
// that it comes, an empty After that it goes. Where a value is sensitive there is
// "(sensitive value)", on both sides if it is another.
type PlanChange struct {
	What   string `json:"what"`         // module, sha256, config, limits, …, listen, send, wire, root, privileged, stopped, parent, name
	Of     string `json:"of,omitempty"` // which edge or wire, or which sensitive attribute of the configuration
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// GraphPlan is what becomes of graphs whose members go from one to another.
type GraphPlan struct {
	Kind   string      `json:"kind"` // merge, split, rearrange, begin or end
	Before []GraphID   `json:"before"`
	After  []GraphPart `json:"after"`
}

// GraphPart is one graph as it is going to be.
type GraphPart struct {
	Graph   GraphID  `json:"graph,omitempty"` // empty for one that does not exist yet
	Members []string `json:"members"`         // creatures by address or else by name, sorted
}

// Empty reports whether nothing changes, as far as can be known; see
// [CreaturePlan.Unknown].
func (p *Plan) Empty() bool {
	return len(p.Graphs) == 0 &&
		!slices.ContainsFunc(p.Declared, func(d DeclarationPlan) bool { return !d.idle() }) &&
		!slices.ContainsFunc(p.Creatures, func(c CreaturePlan) bool { return !c.idle() }) &&
		!slices.ContainsFunc(p.Channels, func(c ChannelPlan) bool { return !c.idle() })
}

// Plan says what [Engine.ApplyAll] would do with the deployments, and does none of
// it. An error is the one that ApplyAll would answer.
func (e *Engine) Plan(ctx context.Context, deployments ...*Deployment) (*Plan, error) {
	return e.plan(ctx, false, deployments)
}

// PlanResume says what ApplyAll and then [Engine.Restore] would do, and does none of it.
func (e *Engine) PlanResume(ctx context.Context, deployments ...*Deployment) (*Plan, error) {
	return e.plan(ctx, true, deployments)
}

func (e *Engine) plan(ctx context.Context, restores bool, deployments []*Deployment) (*Plan, error) {
	p := &planning{restores: restores, o: Options{Host: e.host, Load: e.load, Durability: e.durability, Clock: e.clock}}
	e.mu.RLock()
	if e.closed || e.isClosing() {
		e.mu.RUnlock()
		return nil, errClosed
	}
	for _, g := range e.sortedGraphs() {
		p.live = append(p.live, e.rowsOf(g))
	}
	p.running = e.settings()
	for _, d := range e.sortedSaved() {
		p.saved = append(p.saved, withOwnRows(d.SavedGraph)) // somebody may bring it back meanwhile
	}
	for name, d := range e.deployments {
		p.applied = append(p.applied, appliedDeployment{name, d})
	}
	p.problems = slices.Clone(e.problems)
	if e.storage != nil {
		p.archive, _ = e.storage.Storage.(Archive)
	}
	e.mu.RUnlock()
	return p.make(ctx, deployments)
}

// PlanSaved is [Engine.Plan] for saved graphs that belong to somebody else: the
// options need a host and a loader of modules, and no storage. problems are the
// stores that could not be read; archive may be nil, if nobody can read what
// waits.
func PlanSaved(ctx context.Context, o Options, saved []SavedGraph, problems []error, archive Archive, deployments ...*Deployment) (*Plan, error) {
	return newPlanning(o, saved, problems, archive).make(ctx, deployments)
}

// PlanSavedResume is [Engine.PlanResume] for saved graphs that belong to somebody else;
// see [PlanSaved].
func PlanSavedResume(ctx context.Context, o Options, saved []SavedGraph, problems []error, archive Archive, deployments ...*Deployment) (*Plan, error) {
	p := newPlanning(o, saved, problems, archive)
	p.restores = true
	return p.make(ctx, deployments)
}

func newPlanning(o Options, saved []SavedGraph, problems []error, archive Archive) *planning {
	return &planning{
		o:     Options{Host: o.Host, Load: o.Load, Durability: o.Durability, Clock: o.Clock},
		saved: saved, problems: problems, archive: archive,
	}
}

// planning is one plan being made.
type planning struct {
	o        Options
	live     []SavedGraph // of an engine that is running
	running  map[CreatureID]settings
	saved    []SavedGraph
	applied  []appliedDeployment
	problems []error
	archive  Archive
	restores bool // what no deployment has is brought back, too
}

type appliedDeployment struct {
	name string
	*Deployment
}

// make applies the deployments to an engine of its own, in which nothing runs and
// whose storage keeps nothing, and compares. So a plan cannot say anything else
// than what Apply does.
func (p *planning) make(ctx context.Context, deployments []*Deployment) (plan *Plan, err error) {
	before := slices.Concat(p.live, p.saved)
	stage := newRehearsal(before, p.problems, p.archive)
	p.o.Storage = stage
	e, err := assemble(ctx, p.o)
	if err != nil {
		return nil, err
	}
	e.cancel = func() {}
	defer func() {
		if cerr := e.Close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	if err := e.pretend(ctx, p); err != nil {
		return nil, err
	}
	borrowed := make([]*Deployment, len(deployments))
	for i, d := range deployments {
		borrowed[i] = withBorrowedPolicy(d)
	}
	if _, err := e.ApplyAll(ctx, borrowed...); err != nil {
		return nil, err
	}
	if p.restores {
		if _, _, err := e.Restore(ctx); err != nil {
			return nil, err
		}
	}
	c := newComparison(before, e.rows())
	c.hidden = hiddenIn(p.running, e)
	plan = c.plan()
	plan.Declared = p.planDeclared(before, deployments)
	plan.Problems = slices.Concat(p.problems, e.staying())
	for i := range plan.Creatures {
		plan.Creatures[i].Buried = stage.buried[c.ids[i]]
	}
	return plan, p.countLetters(ctx, plan, before)
}

// planDeclared compares with what was declared: of a deployment that runs that is
// known, and of any other it is what stores remember.
func (p *planning) planDeclared(graphs []SavedGraph, deployments []*Deployment) []DeclarationPlan {
	before, existing := declaredIn(graphs), map[string]bool{}
	for i := range graphs {
		maps.Copy(existing, deploymentsIn(&graphs[i]))
	}
	for _, a := range p.applied {
		before[a.name], existing[a.name] = a.Declared, true
	}
	return planDeclared(before, existing, deployments)
}

// staying says of the creatures that have been brought back and stay stopped why.
func (e *Engine) staying() (out []error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, id := range e.topo.Creatures() {
		if c := e.creatures[id]; c.huskReason != nil {
			out = append(out, c.huskReason)
		}
	}
	return out
}

// withBorrowedPolicy is a deployment whose policy is somebody else's to close.
func withBorrowedPolicy(d *Deployment) *Deployment {
	if d.Policy == nil {
		return d
	}
	out := *d
	out.Policy = struct{ Policy }{d.Policy}
	return &out
}

// pretend brings back graphs that are running somewhere else. Their creatures
// have their modules there, and sensitive attributes, which no row has.
func (e *Engine) pretend(ctx context.Context, p *planning) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range p.applied {
		d := withBorrowedPolicy(a.Deployment)
		if e.deployments[a.name] = d; d.Policy != nil {
			e.policies.Store(a.name, d.Policy)
		}
	}
	w := e.newWaking()
	for i := range p.live {
		err := w.add(ctx, e.saved[p.live[i].Graph], func(_ context.Context, row CreatureRow) (*creature, error) {
			c := newHusk(row)
			c.husk, c.stopped, c.spec.Stopped = false, row.Stopped, row.Stopped
			s := p.running[row.ID]
			c.config, c.spec.Config, c.spec.Secret = s.config, s.spec.Config, s.spec.Secret
			return c, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rows are the graphs of the engine as a storage would save them, and those that
// are saved.
func (e *Engine) rows() []SavedGraph {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out []SavedGraph
	for _, g := range e.sortedGraphs() {
		out = append(out, e.rowsOf(g))
	}
	for _, d := range e.sortedSaved() {
		out = append(out, d.SavedGraph)
	}
	return out
}

// rowsOf are the live rows of a graph. The caller holds the mutation lock, to
// read at least.
func (e *Engine) rowsOf(g *graph) SavedGraph {
	g.mu.Lock()
	defer g.mu.Unlock()
	info, _ := e.topo.Graph(g.id)
	x := e.newChange("plan") // which only reads, and is never carried out
	rec := x.firstRecord(&storeGroup{before: []*graph{g}, after: []GraphID{g.id}}, info, g.origin)
	out := SavedGraph{
		Session: SessionID(g.id), Graph: g.id, Born: g.born, Durability: g.durability,
		Creatures: rec.Creatures, Channels: rec.Channels, Heads: rec.Heads, Edges: rec.Edges,
		Cursors: rec.Cursors, Timers: rec.Timers, Requests: rec.Requests, Wires: rec.Wires, Meta: g.metaWithMemory(), LastTime: g.now,
	}
	if g.store != nil {
		out.Session = g.store.Info().Session
	}
	return out
}

// countLetters adds the dead letters that there are.
func (p *planning) countLetters(ctx context.Context, plan *Plan, graphs []SavedGraph) error {
	if p.archive == nil {
		return nil
	}
	const page = 1000
	count := map[CreatureID]int{}
	for i := range graphs {
		for after := (EventID{}); ; {
			letters, err := p.archive.DeadLetters(ctx, graphs[i].Session, "", after, page)
			if abi.CodeOf(err) == abi.NotFound {
				break // it has no file
			}
			if err != nil {
				return err
			}
			for k := range letters {
				count[letters[k].Creature]++
				after = letters[k].ID
			}
			if len(letters) < page {
				break
			}
		}
	}
	for i := range plan.Creatures {
		c := &plan.Creatures[i]
		c.Waiting.DeadLetters = count[c.Creature]
	}
	return nil
}
