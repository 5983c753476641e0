package operations

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// WireArgs are the arguments of wire.
type WireArgs struct {
	From        string `json:"from" op:"required" doc:"creature whose output the wire carries"`
	To          string `json:"to" op:"required" doc:"creature in the same graph, or root for the root of its deployment"`
	Name        string `json:"name,omitempty" doc:"name, unique among the wires of the creature"`
	WithContent *bool  `json:"with_content,omitempty" doc:"whether to deliver the output itself; true if left out"`
	Prompt      string `json:"prompt,omitempty" doc:"text to deliver, which may contain {output}, {source} and {channel}"`
	When        string `json:"when,omitempty" doc:"predicate of the creature's recipe; only outputs for which it is true are delivered"`
	AllowSelf   bool   `json:"allow_self,omitempty" doc:"whether the wire may lead back to its own creature"`
}

// WireResult is the result of wire and unwire.
type WireResult struct {
	Wire journal.WireID `json:"wire"` // id of the wire
}

// UnwireArgs are the arguments of unwire.
type UnwireArgs struct {
	Wire string `json:"wire" op:"required" doc:"id or, with from, the name"`
	From string `json:"from,omitempty" doc:"creature whose output the wire carries"`
}

// WiresArgs are the arguments of wires.
type WiresArgs struct {
	Graph    string `json:"graph,omitempty" doc:"only wires of this graph: any id it has had, or the name of a member"`
	Creature string `json:"creature,omitempty" doc:"only wires from or to this creature"`
}

// WiresResult is the result of wires.
type WiresResult struct {
	Wires []journal.OutputWire `json:"wires"` // the wires that match
}

func wireOperations() []Operation {
	return []Operation{
		edit("wire", "Adds an output wire from a creature to another one, or to its root.", wire),
		edit("unwire", "Removes an output wire.", unwire),
		read("wires", "Lists output wires.", wires),
	}
}

func wire(ctx context.Context, b *staging, a *WireArgs) (*WireResult, error) {
	from, err := b.FindCreature("", a.From)
	if err != nil {
		return nil, err
	}
	to := journal.ToRoot
	if a.To != string(journal.ToRoot) {
		if to, err = b.FindCreature(b.GraphOf(from), a.To); err != nil {
			// A creature of another graph gets an error of its own.
			if to, err = b.FindCreature("", a.To); err != nil {
				return nil, err
			}
		}
	}
	w, err := b.AddWire(ctx, journal.OutputWire{
		Name: a.Name, From: from, To: to, WithContent: a.WithContent == nil || *a.WithContent,
		Prompt: a.Prompt, When: a.When, AllowSelf: a.AllowSelf,
	})
	if err != nil {
		return nil, err
	}
	return &WireResult{w.ID}, nil
}

func unwire(ctx context.Context, b *staging, a *UnwireArgs) (*WireResult, error) {
	var from terrarium.CreatureID
	if a.From != "" {
		var err error
		if from, err = b.FindCreature("", a.From); err != nil {
			return nil, err
		}
	}
	w, err := b.FindWire(from, a.Wire)
	if err != nil {
		return nil, err
	}
	if from != "" && w.From != from {
		return nil, invalid("unwire", "the wire "+a.Wire+" does not belong to "+a.From, "leave out from, or name the wire's creature")
	}
	if _, err := b.RemoveWire(ctx, w.ID); err != nil {
		return nil, err
	}
	return &WireResult{w.ID}, nil
}

func wires(ctx context.Context, s *client, a *WiresArgs) (*WiresResult, error) {
	g, err := s.graphs(ctx).ifNamed(a.Graph)
	if err != nil {
		return nil, err
	}
	if a.Creature == "" {
		list, err := s.t.Wires(g)
		if err != nil {
			return nil, err
		}
		return &WiresResult{list}, nil
	}
	c, err := s.t.FindCreature(g, a.Creature)
	if err != nil {
		return nil, err
	}
	out, in, err := s.t.WiresOf(c)
	if err != nil {
		return nil, err
	}
	in = slices.DeleteFunc(in, func(w journal.OutputWire) bool { return w.From == c }) // already in out
	return &WiresResult{append(out, in...)}, nil
}
