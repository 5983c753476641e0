package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// WireArgs are the arguments of the tool group_wire. Which of them an action takes
// is said with each.
type WireArgs struct {
	Action string `json:"action" jsonschema:"enum=add,enum=remove,enum=list"`
	// From is for all actions; with list it may be left out.
	From string `json:"from,omitempty" jsonschema:"description=whose output it is: a member of the own graph by id or name"`
	// To and what follows are for add.
	To          string `json:"to,omitempty" jsonschema:"description=who gets it: a member of the own graph by id or name or root"`
	WithContent *bool  `json:"with_content,omitempty" jsonschema:"description=deliver the output itself and not only where it came from; true if it is left out"`
	Prompt      string `json:"prompt,omitempty" jsonschema:"description=a template with {output} and {source} and {channel}"`
	When        string `json:"when,omitempty" jsonschema:"description=a predicate of the recipe"`
	AllowSelf   bool   `json:"allow_self,omitempty"`
	Name        string `json:"name,omitempty" jsonschema:"description=unique among the wires of the source"`
	// Wire is for remove.
	Wire string `json:"wire,omitempty" jsonschema:"description=its id or with from its name"`
	// After and Limit are for list.
	After string `json:"after,omitempty" jsonschema:"description=to go on behind the answer before: what its next says"`
	Limit int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=64,description=how many wires to answer; 64 if it is left out"`
}

// WireResult is what group_wire answers: the wire that was added or removed, or
// those that there are.
type WireResult struct {
	Wire  *journal.OutputWire  `json:"wire,omitempty"`
	Wires []journal.OutputWire `json:"wires,omitzero"` // with list, also if there are none
	Next  string               `json:"next,omitempty"` // if there are more: what to give as after
}

func groupWire(t *turn, args []byte) (any, error) {
	a, err := decodeArgs[WireArgs](args)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Action == "list" {
		return t.listWires(&a)
	}
	return t.edit(func(s *staging) (groupOp, error) {
		if a.Action == "remove" {
			w, err := s.wire(&a)
			return &removeWire{w.ID}, err
		}
		w := journal.OutputWire{Name: a.Name, To: journal.ToRoot, WithContent: a.WithContent == nil || *a.WithContent, Prompt: a.Prompt, When: a.When, AllowSelf: a.AllowSelf}
		from, err := s.creature(a.From)
		if err != nil {
			return nil, err
		}
		w.From = from.ID
		if a.To != string(journal.ToRoot) {
			to, err := s.creature(a.To)
			if err != nil {
				return nil, err
			}
			w.To = to.ID
		}
		return &addWire{w}, nil
	})
}

// check refuses arguments that do not go with the action.
func (a *WireArgs) check() error {
	given := []struct {
		name  string
		given bool
		in    string // the actions that take it
	}{
		{"from", a.From != "", "add remove list"}, {"to", a.To != "", "add"}, {"with_content", a.WithContent != nil, "add"}, {"prompt", a.Prompt != "", "add"},
		{"when", a.When != "", "add"}, {"allow_self", a.AllowSelf, "add"}, {"name", a.Name != "", "add"}, {"wire", a.Wire != "", "remove"},
		{"after", a.After != "", "list"}, {"limit", a.Limit != 0, "list"},
	}
	needs := map[string][]string{"add": {"from", "to"}, "remove": {"wire"}, "list": nil}
	needed, known := needs[a.Action]
	if !known {
		return errtext.Invalid("group_wire", fmt.Sprintf("%s is not an action", errtext.Quoted([]byte(a.Action))), "use add, remove or list")
	}
	has := map[string]bool{}
	for _, g := range given {
		if g.given && !slices.Contains(strings.Fields(g.in), a.Action) {
			return errtext.Invalid("group_wire", fmt.Sprintf("%s does not take the argument %s", a.Action, g.name), "leave it out")
		}
		has[g.name] = g.given
	}
	for _, name := range needed {
		if !has[name] {
			return errtext.Invalid("group_wire", fmt.Sprintf("%s needs the argument %s", a.Action, name), "add it")
		}
	}
	return nil
}

// wire finds an output wire of the caller's graph by its id or, if the call says
// whose it is, by its name.
func (s *staging) wire(a *WireArgs) (journal.OutputWire, error) {
	if cr, w, ok := s.x.findWire(journal.WireID(a.Wire)); ok && s.topo().GraphOf(cr.id) == s.home() {
		return w, nil
	}
	if a.From != "" {
		from, err := s.creature(a.From)
		if err != nil {
			return journal.OutputWire{}, err
		}
		list := s.x.wiresOf(s.x.creature(from.ID))
		if i := wireNamed(list, a.Wire); i >= 0 {
			return list[i], nil
		}
	}
	return journal.OutputWire{}, noWire(errtext.Clip(a.Wire))
}

// listWires lists the wires of the caller's graph, or of one member, or a part of
// them.
func (t *turn) listWires(a *WireArgs) (any, error) {
	out := WireResult{Wires: []journal.OutputWire{}}
	err := t.look(func(s *staging) (err error) {
		if err := s.mayEdit(); err != nil {
			return err
		}
		only := journal.CreatureID("")
		if a.From != "" {
			from, err := s.creature(a.From)
			if err != nil {
				return err
			}
			only = from.ID
		}
		p := newPart(a.After, a.Limit, maxListedWires)
		for _, w := range s.wires() {
			if (only == "" || w.From == only) && p.has(string(w.ID)) {
				out.Wires = append(out.Wires, w)
			}
		}
		out.Next, err = p.end()
		return err
	})
	return out, err
}

// wires lists the output wires of the caller's graph.
func (s *staging) wires() []journal.OutputWire {
	out := []journal.OutputWire{}
	info, _ := s.topo().Graph(s.home())
	for _, id := range info.Creatures {
		out = append(out, s.x.wiresLeft(s.x.creature(id))...)
	}
	return out
}

// addWire is the operation of group_wire with add.
type addWire struct{ wire journal.OutputWire }

func (o *addWire) stage(s *staging) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if s.topo().GraphOf(o.wire.From) != s.home() {
		return nil, errtext.Gone("creature", string(o.wire.From))
	}
	w, err := s.x.addWire(o.wire)
	if err != nil {
		return nil, err
	}
	return WireResult{Wire: &w}, nil
}

// removeWire is the operation of group_wire with remove.
type removeWire struct{ id journal.WireID }

func (o *removeWire) stage(s *staging) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	cr, _, ok := s.x.findWire(o.id)
	if !ok || s.topo().GraphOf(cr.id) != s.home() {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "group_wire", Message: fmt.Sprintf("the output wire %s is not in this graph any more", o.id),
			Remedy: "group_wire with list tells which are", IDs: map[string]string{"wire": string(o.id)},
		}
	}
	w, err := s.x.removeWire(o.id)
	if err != nil {
		return nil, err
	}
	return WireResult{Wire: &w}, nil
}
