package operations

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// WireArgs are the arguments of wire.
type WireArgs struct {
	From        string `json:"from" op:"required" doc:"creature whose output it is"`
	To          string `json:"to" op:"required" doc:"creature of the same graph, or root for the root of its deployment"`
	Name        string `json:"name,omitempty" doc:"unique among the wires of the creature"`
	WithContent *bool  `json:"with_content,omitempty" doc:"whether the output itself is delivered; true without it"`
	Prompt      string `json:"prompt,omitempty" doc:"text to deliver, with {output}, {source} and {channel} in it"`
	When        string `json:"when,omitempty" doc:"predicate of the creature's recipe: only outputs of which it holds"`
	AllowSelf   bool   `json:"allow_self,omitempty" doc:"it may lead back to where it comes from"`
}

// WireResult is the result of wire and unwire.
type WireResult struct {
	Wire journal.WireID `json:"wire"`
}

// UnwireArgs are the arguments of unwire.
type UnwireArgs struct {
	Wire string `json:"wire" op:"required" doc:"id, or with from its name"`
	From string `json:"from,omitempty" doc:"creature that it leads out of"`
}

// WiresArgs are the arguments of wires.
type WiresArgs struct {
	Graph    string `json:"graph,omitempty" doc:"only those of this graph, by any id it has had or the name of a member"`
	Creature string `json:"creature,omitempty" doc:"only those that lead out of this creature or to it"`
}

// WiresResult is the result of wires.
type WiresResult struct {
	Wires []journal.OutputWire `json:"wires"`
}

func wireOperations() []Operation {
	return []Operation{
		edit("wire", "Leads the output of one creature to another, or to its root.", wire),
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
			// One of another graph is an error that says so.
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
		return nil, invalid("unwire", "the wire "+a.Wire+" leads out of another creature than "+a.From, "leave from out, or name the other")
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
	in = slices.DeleteFunc(in, func(w journal.OutputWire) bool { return w.From == c }) // it is in out
	return &WiresResult{append(out, in...)}, nil
}
