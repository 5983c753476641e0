package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// WireID names an output wire.
type WireID string

// ToRoot as the target of an output wire stands for the root of the source's
// own deployment, whoever that is when there is something to deliver.
const ToRoot CreatureID = "root"

// The bounds of output wires.
const (
	// MaxWires is the most output wires that lead out of one creature.
	MaxWires = 64
	// MaxPrompt is the most bytes that the prompt of an output wire may have.
	MaxPrompt = 16 << 10
	// MaxHops is how many output wires in a row one thing may lead over: what a
	// creature puts out because of an output that came over a wire has one hop
	// more. Beyond it a delivery becomes a dead letter whose error names the
	// loop.
	MaxHops = 64
)

// OutputWire leads the output of one creature to another, or to its root: at
// the end of a turn with output, as part of its commit, the target gets a
// delivery of the kind output. It joins no graphs: both ends are in the same one
// when it is added, and a split between them removes it.
type OutputWire struct {
	ID   WireID     `json:"wire"`           // its id
	Name string     `json:"name,omitempty"` // unique among the wires of the source; may be empty
	From CreatureID `json:"from"`           // the source
	To   CreatureID `json:"to"`             // the target: the id of a creature, or root
	// Whether the output itself is delivered; without it, the target learns
	// where the output came from and how large it is.
	WithContent bool `json:"with_content"`
	// The template of what is delivered, with {output}, {source} and {channel}
	// in it; empty means the output as it is, or without content a JSON object.
	Prompt string `json:"prompt,omitempty"`
	// A predicate of the source's deployment: only outputs of which it holds are
	// delivered. Empty means all.
	When string `json:"when,omitempty"`
	// Whether it may lead back to its source.
	AllowSelf bool `json:"allow_self,omitempty"`
	// Its place among the wires of the source.
	Order uint64 `json:"-"`
}

// sameAs reports whether two wires do the same, whatever they are called.
func (w OutputWire) sameAs(o OutputWire) bool {
	w.ID, w.Name, w.Order = o.ID, o.Name, o.Order
	return w == o
}

// AddWire adds an output wire and returns it with its id. It answers not_found
// for creatures and predicates that do not exist, not_connected for creatures
// of two graphs, already_exists for a name or a wire that From has already, and
// limit for one wire too many.
func (e *Engine) AddWire(ctx context.Context, w OutputWire) (OutputWire, error) {
	var added OutputWire
	err := e.Batch(ctx, func(b *Batch) (err error) {
		added, err = b.AddWire(w)
		return err
	})
	return added, err
}

// RemoveWire removes an output wire and returns what it was. Turns that commit
// from now on deliver nothing over it.
func (e *Engine) RemoveWire(ctx context.Context, id WireID) (OutputWire, error) {
	var removed OutputWire
	err := e.Batch(ctx, func(b *Batch) (err error) {
		removed, err = b.RemoveWire(id)
		return err
	})
	return removed, err
}

// AddWire is [Engine.AddWire] as a step of a batch.
func (b *Batch) AddWire(w OutputWire) (OutputWire, error) { return b.x.addWire(w) }

// RemoveWire is [Engine.RemoveWire] as a step of a batch.
func (b *Batch) RemoveWire(id WireID) (OutputWire, error) { return b.x.removeWire(id) }

// FindWire is [Engine.FindWire] as the batch has them.
func (b *Batch) FindWire(from CreatureID, name string) (OutputWire, error) {
	if _, w, ok := b.x.findWire(WireID(name)); ok {
		return w, nil
	}
	if cr := b.x.creature(from); cr != nil {
		if i := wireNamed(b.x.wiresOf(cr), name); i >= 0 {
			return b.x.wiresOf(cr)[i], nil
		}
	}
	return OutputWire{}, noWire(name)
}

// FindWire finds an output wire by its id or, if a creature is given that it
// leads out of, by its name.
func (e *Engine) FindWire(from CreatureID, name string) (OutputWire, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if cr := e.wires[WireID(name)]; cr != nil {
		return cr.wires[wireWithID(cr.wires, WireID(name))], nil
	}
	if cr := e.creatures[from]; cr != nil {
		if i := wireNamed(cr.wires, name); i >= 0 {
			return cr.wires[i], nil
		}
	}
	return OutputWire{}, noWire(name)
}

// Wires lists the output wires of a graph, or of all, those of elder creatures
// first.
func (e *Engine) Wires(id GraphID) ([]OutputWire, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	graphs := e.sortedGraphs()
	if id != "" {
		now, ok := e.topo.Current(id)
		if !ok {
			return nil, gone("graph", string(id))
		}
		graphs = []*graph{e.graphs[now]}
	}
	out := []OutputWire{}
	for _, g := range graphs {
		g.mu.Lock()
		out = append(out, g.wires()...)
		g.mu.Unlock()
	}
	return out, nil
}

// WiresOf lists the output wires that lead out of a creature, and those of its
// graph that lead to it, as a root too.
func (e *Engine) WiresOf(creature CreatureID) (out, in []OutputWire, err error) {
	e.mu.RLock()
	c := e.creatures[creature]
	e.mu.RUnlock()
	if c != nil {
		if g := c.home.lock(); g != nil {
			defer g.mu.Unlock()
			out, in = g.wiresOf(c)
			return out, in, nil
		}
	}
	return nil, nil, gone("creature", string(creature))
}

// wires lists the output wires of the graph. The caller holds mu.
func (g *graph) wires() []OutputWire {
	out := []OutputWire{}
	for _, c := range g.sortedCreatures() {
		out = append(out, c.wires...)
	}
	return out
}

// wiresOf is [Engine.WiresOf]. The caller holds mu.
func (g *graph) wiresOf(c *creature) (out, in []OutputWire) {
	for _, w := range g.wires() {
		if w.To == c.id || w.To == ToRoot && g.target(g.creatures[w.From], &w) == c {
			in = append(in, w)
		}
	}
	return orEmpty(slices.Clone(c.wires)), orEmpty(in)
}

// target is where a wire of a creature leads at the moment: to a member of the
// graph, or nowhere. The caller holds mu.
func (g *graph) target(from *creature, w *OutputWire) *creature {
	if w.To == ToRoot {
		return g.rootOf(from)
	}
	return g.creatures[w.To]
}

// rootOf is the root of a creature's own deployment or, if it has none, the
// eldest root of the graph. The caller holds mu.
func (g *graph) rootOf(c *creature) (root *creature) {
	for _, r := range g.roots {
		if (c.deployment == "" || r.deployment == c.deployment) && (root == nil || r.born < root.born) {
			root = r
		}
	}
	return root
}

func wireWithID(list []OutputWire, id WireID) int {
	return slices.IndexFunc(list, func(w OutputWire) bool { return w.ID == id })
}

func wireNamed(list []OutputWire, name string) int {
	return slices.IndexFunc(list, func(w OutputWire) bool { return w.Name == name && name != "" })
}

func noWire(name string) error {
	err := gone("output wire", name)
	err.Remedy, err.IDs = "wires lists what exists", map[string]string{"wire": name}
	return err
}

// checkWire refuses wires that no creature could have.
func checkWire(w *OutputWire) error {
	if w.Name != "" {
		if err := checkName("wire", "wire", w.Name); err != nil {
			return err
		}
	}
	if w.From == w.To && !w.AllowSelf {
		return invalid("wire", "the wire leads from "+string(w.From)+" back to itself", "set allow_self if that is meant")
	}
	if len(w.Prompt) > MaxPrompt {
		return &abi.Error{
			Code: abi.TooLarge, Op: "wire", Message: fmt.Sprintf("the prompt has %d bytes; at most %d are allowed", len(w.Prompt), MaxPrompt),
			Remedy: "let the target know what is always the same",
		}
	}
	return CheckPrompt(w.Prompt, w.WithContent)
}
