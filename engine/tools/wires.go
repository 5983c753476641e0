package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// WireArgs holds the arguments of the tool group_wire. The fields say which
// actions take them.
type WireArgs struct {
	Action string `json:"action" bounds:"enum=add|remove|list"`
	// From is for all actions; it is optional for list.
	From string `json:"from,omitempty" jsonschema:"the source of the output: id or name of a member of the caller's graph"`
	// To and the fields up to Name are for add.
	To          string `json:"to,omitempty" jsonschema:"the receiver: id or name of a member of the caller's graph, or root for the root of the source's deployment"`
	WithContent *bool  `json:"with_content,omitempty" jsonschema:"deliver the output itself, not only its source; default true"`
	Prompt      string `json:"prompt,omitempty" jsonschema:"text to deliver, which may contain {output}, {source} and {channel}"`
	When        string `json:"when,omitempty" jsonschema:"predicate of the source's recipe; only outputs for which it is true are delivered"`
	AllowSelf   bool   `json:"allow_self,omitempty"`
	Name        string `json:"name,omitempty" jsonschema:"unique among the wires of the source"`
	// Wire is for remove.
	Wire string `json:"wire,omitempty" jsonschema:"id of the wire, or its name together with from"`
	// After and Limit are for list.
	After string `json:"after,omitempty" jsonschema:"next of the previous result, to continue from there"`
	Limit int    `json:"limit,omitempty" bounds:"minimum=1,maximum=64" jsonschema:"the most wires to return; default 64"`
}

// WireResult is the result of group_wire: the wire that was added or removed,
// or the list of wires.
type WireResult struct {
	Wire  *journal.OutputWire  `json:"wire,omitempty"`
	Wires []journal.OutputWire `json:"wires,omitzero"` // for list, even if empty
	Next  string               `json:"next,omitempty"` // if there are more wires: pass it as after to list them
}

func groupWire(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[WireArgs](args)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Action == "list" {
		return listWires(ctx, t, &a)
	}
	return edit(ctx, t, func(s *Stage) (operation, error) {
		if a.Action == "remove" {
			w, err := s.wire(&a)
			return &removeWire{w.ID}, err
		}
		w := journal.OutputWire{Name: a.Name, To: journal.ToRoot, WithContent: a.WithContent == nil || *a.WithContent, Prompt: a.Prompt, When: a.When, AllowSelf: a.AllowSelf}
		from, err := s.Find(a.From)
		if err != nil {
			return nil, err
		}
		w.From = from.ID
		if a.To != string(journal.ToRoot) {
			to, err := s.Find(a.To)
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
		in    string // the actions that take the argument
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

// wire finds an output wire of the caller's graph by its id or, if the call
// names its source, by its name.
func (s *Stage) wire(a *WireArgs) (journal.OutputWire, error) {
	if w, ok := s.FindWire(journal.WireID(a.Wire)); ok && s.Topology().GraphOf(w.From) == s.home() {
		return w, nil
	}
	if a.From != "" {
		from, err := s.Find(a.From)
		if err != nil {
			return journal.OutputWire{}, err
		}
		list := s.WiresOf(from.ID)
		if i := draft.WireNamed(list, a.Wire); i >= 0 {
			return list[i], nil
		}
	}
	return journal.OutputWire{}, draft.NoWire(errtext.Clip(a.Wire))
}

// listWires lists the wires of the caller's graph or of one member, or a part
// of them.
func listWires(ctx context.Context, t Turn, a *WireArgs) (any, error) {
	out := WireResult{Wires: []journal.OutputWire{}}
	err := t.Look(ctx, func(s *Stage) (err error) {
		if err := s.mayEdit(); err != nil {
			return err
		}
		only := journal.CreatureID("")
		if a.From != "" {
			from, err := s.Find(a.From)
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
func (s *Stage) wires() []journal.OutputWire {
	out := []journal.OutputWire{}
	info, _ := s.Topology().Graph(s.home())
	for _, id := range info.Creatures {
		out = append(out, s.WiresLeft(id)...)
	}
	return out
}

// addWire is the operation of group_wire with add.
type addWire struct{ wire journal.OutputWire }

func (o *addWire) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if s.Topology().GraphOf(o.wire.From) != s.home() {
		return nil, errtext.Gone("creature", string(o.wire.From))
	}
	w, err := s.AddWire(ctx, o.wire)
	if err != nil {
		return nil, err
	}
	return WireResult{Wire: &w}, nil
}

// removeWire is the operation of group_wire with remove.
type removeWire struct{ id journal.WireID }

func (o *removeWire) stage(ctx context.Context, s *Stage) (any, error) {
	if err := s.mayEdit(); err != nil {
		return nil, err
	}
	if w, ok := s.FindWire(o.id); !ok || s.Topology().GraphOf(w.From) != s.home() {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "group_wire", Message: fmt.Sprintf("the output wire %s is no longer in this graph", o.id),
			Remedy: "list the wires with group_wire", IDs: map[string]string{"wire": string(o.id)},
		}
	}
	w, err := s.RemoveWire(ctx, o.id)
	if err != nil {
		return nil, err
	}
	return WireResult{Wire: &w}, nil
}
