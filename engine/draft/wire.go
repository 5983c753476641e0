package draft

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
)

// WireEdits holds a draft's changes to output wires. The topology does not
// have wires, so undoing the draft needs no work for them.
type WireEdits struct {
	// Lists holds the new wires of the creatures whose wires the draft
	// changes.
	Lists map[journal.CreatureID][]journal.OutputWire
	Notes []WireNote
}

// WireNote is a change of a wire to be logged and stored: added, removed or,
// without a kind, moved to another place in the order.
type WireNote struct {
	Kind   journal.EventKind
	Wire   journal.OutputWire
	Reason journal.UnwireReason
	// Logged is the event as logged by a cut, or nil.
	Logged *journal.Event
}

// Event returns the log event for the change of a wire.
func (n *WireNote) Event() journal.Event {
	ev := journal.Event{Kind: n.Kind, Creature: n.Wire.From, Payload: journal.JSON(n.Wire)}
	if n.Kind == journal.EventWireRemoved {
		ev.Payload = journal.JSON(journal.WireRemovedPayload{OutputWire: n.Wire, Reason: n.Reason})
	}
	return ev
}

// set replaces the wires of a creature.
func (w *WireEdits) set(from journal.CreatureID, list []journal.OutputWire) {
	if w.Lists == nil {
		w.Lists = map[journal.CreatureID][]journal.OutputWire{}
	}
	w.Lists[from] = list
}

// take removes a wire from the list of its source. A wire added by the draft
// leaves no trace.
func (w *WireEdits) take(wire journal.OutputWire, list []journal.OutputWire, reason journal.UnwireReason) {
	w.set(wire.From, slices.DeleteFunc(slices.Clone(list), func(o journal.OutputWire) bool { return o.ID == wire.ID }))
	before := len(w.Notes)
	w.Notes = slices.DeleteFunc(w.Notes, func(n WireNote) bool { return n.Kind == journal.EventWireAdded && n.Wire.ID == wire.ID })
	if len(w.Notes) == before {
		w.Notes = append(w.Notes, WireNote{Kind: journal.EventWireRemoved, Wire: wire, Reason: reason})
	}
}

// WiresOf returns the wires of a creature, in ascending order. The list must
// not be modified.
func (d *Draft) WiresOf(id journal.CreatureID) []journal.OutputWire {
	if list, ok := d.wires.Lists[id]; ok {
		return list
	}
	m, _ := d.Member(id)
	return m.Wires
}

// SetWires replaces the wires of a creature without asking policies or
// recording notes.
func (d *Draft) SetWires(id journal.CreatureID, list []journal.OutputWire) { d.wires.set(id, list) }

// FindWire finds a wire that exists or is added by the draft.
func (d *Draft) FindWire(id journal.WireID) (journal.OutputWire, bool) {
	var sources []journal.CreatureID
	if from := d.base.WireSource(id); from != "" {
		sources = append(sources, from)
	}
	for from := range d.wires.Lists {
		sources = append(sources, from)
	}
	for _, from := range sources {
		list := d.WiresOf(from)
		if i := WireWithID(list, id); i >= 0 && d.topo.GraphOf(from) != "" {
			return list[i], true
		}
	}
	return journal.OutputWire{}, false
}

// AddWire adds a wire between creatures of one graph. It asks the policies
// concerned.
func (d *Draft) AddWire(ctx context.Context, w journal.OutputWire) (journal.OutputWire, error) {
	if err := d.CheckWire(&w); err != nil {
		return journal.OutputWire{}, err
	}
	if err := d.judgeWire(ctx, &w, true); err != nil {
		return journal.OutputWire{}, err
	}
	list := d.WiresOf(w.From)
	if err := RoomForWire(list, &w); err != nil {
		return journal.OutputWire{}, err
	}
	w.ID, w.Order = d.IDs.NewWire(), 1
	if n := len(list); n > 0 {
		w.Order = list[n-1].Order + 1
	}
	d.SetWires(w.From, append(slices.Clip(list), w))
	d.wires.Notes = append(d.wires.Notes, WireNote{Kind: journal.EventWireAdded, Wire: w})
	return w, nil
}

// CheckWire checks a wire and its ends.
func (d *Draft) CheckWire(w *journal.OutputWire) error {
	home := d.topo.GraphOf(w.From)
	if home == "" {
		return wireEnd(errtext.Gone("creature", string(w.From)))
	}
	if err := checkWire(w); err != nil {
		return err
	}
	if w.To == journal.ToRoot {
		if from, _ := d.topo.Creature(w.From); from.Root && !w.AllowSelf {
			return errtext.Invalid("wire", "the wire leads from the root "+from.Name+" to the root, which is the same creature", "set allow_self if that is intended")
		}
	} else if graph := d.topo.GraphOf(w.To); graph == "" {
		return wireEnd(errtext.Gone("creature", string(w.To)))
	} else if graph != home {
		return &abi.Error{
			Code: abi.NotConnected, Op: "wire", Message: "an output wire does not join graphs, but " + string(w.From) + " and " + string(w.To) + " are in different graphs",
			Remedy: "connect them first", IDs: map[string]string{"from": string(w.From), "to": string(w.To)},
		}
	}
	m, _ := d.Member(w.From)
	if w.When == "" || d.Predicate(m.Deployment, w.When) != nil {
		return nil
	}
	return d.noPredicate(m, w.When)
}

func wireEnd(err *abi.Error) error {
	err.Op = "wire"
	return err
}

// checkWire refuses wires that are invalid for every creature.
func checkWire(w *journal.OutputWire) error {
	if w.Name != "" {
		if err := deploy.CheckName("wire", "wire", w.Name); err != nil {
			return err
		}
	}
	if w.From == w.To && !w.AllowSelf {
		return errtext.Invalid("wire", "the wire leads from "+string(w.From)+" back to itself", "set allow_self if that is intended")
	}
	if len(w.Prompt) > journal.MaxPrompt {
		return &abi.Error{
			Code: abi.TooLarge, Op: "wire", Message: fmt.Sprintf("the prompt has %d bytes; at most %d are allowed", len(w.Prompt), journal.MaxPrompt),
			Remedy: "put the constant part into the target's configuration",
		}
	}
	return deploy.CheckPrompt(w.Prompt, w.WithContent)
}

// RoomForWire refuses a wire that cannot be added to the others of its source.
func RoomForWire(list []journal.OutputWire, w *journal.OutputWire) error {
	if len(list) >= journal.MaxWires {
		return &abi.Error{
			Code: abi.LimitExceeded, Op: "wire", Message: fmt.Sprintf("%s has %d output wires; the limit wires is %d", w.From, len(list), journal.MaxWires),
			Remedy: "remove one, or send on a channel, which any number of creatures can listen on", IDs: map[string]string{"creature": string(w.From)},
		}
	}
	for _, other := range list {
		what, remedy := "such a wire", "use that one, or remove it first: wires that differ only in name are not allowed"
		if w.Name != "" && other.Name == w.Name {
			what, remedy = "a wire named "+w.Name, "remove that one first, or use another name"
		} else if !w.SameAs(other) {
			continue
		}
		return &abi.Error{
			Code: abi.AlreadyExists, Op: "wire", Message: string(w.From) + " has " + what + " already",
			Remedy: remedy, IDs: map[string]string{"wire": string(other.ID)},
		}
	}
	return nil
}

// RemoveWire removes a wire. It asks the policies concerned.
func (d *Draft) RemoveWire(ctx context.Context, id journal.WireID) (journal.OutputWire, error) {
	w, ok := d.FindWire(id)
	if !ok {
		return journal.OutputWire{}, NoWire(string(id))
	}
	if err := d.judgeWire(ctx, &w, false); err != nil {
		return journal.OutputWire{}, err
	}
	d.wires.take(w, d.WiresOf(w.From), journal.UnwireAsked)
	return w, nil
}

// KeepWire appends an existing wire to its creature's list.
func (d *Draft) KeepWire(w journal.OutputWire) {
	list, place := d.WiresOf(w.From), uint64(1)
	if len(list) > 0 {
		place = list[len(list)-1].Order + 1
	}
	if place != w.Order {
		w.Order = place
		d.wires.Notes = append(d.wires.Notes, WireNote{Wire: w})
	}
	d.SetWires(w.From, append(slices.Clip(list), w))
}

// NoteDropped records the removal of wires that a recipe no longer has and
// that are not in the lists.
func (d *Draft) NoteDropped(from journal.CreatureID, had []journal.OutputWire) {
	for _, w := range had {
		if WireWithID(d.WiresOf(from), w.ID) < 0 {
			d.wires.Notes = append(d.wires.Notes, WireNote{Kind: journal.EventWireRemoved, Wire: w, Reason: journal.UnwireRecipe})
		}
	}
}

// PartWires removes the wires whose ends are now in different graphs, for the
// creatures whose wires the draft changes and for the given sources. Wires to
// removed creatures stay: their deliveries become dead letters, until the
// wires are removed.
func (d *Draft) PartWires(sources map[journal.CreatureID]bool) {
	for id := range d.wires.Lists {
		sources[id] = true
	}
	for _, id := range sorted.Keys(sources) {
		for _, w := range d.WiresOf(id) {
			if d.Parted(id, w.To) {
				d.wires.take(w, d.WiresOf(id), journal.UnwireSplit)
			}
		}
	}
}

// WiresLeft returns the wires that a creature will have if nothing more is
// staged: PartWires removes those between different graphs.
func (d *Draft) WiresLeft(id journal.CreatureID) []journal.OutputWire {
	list := slices.Clone(d.WiresOf(id))
	return slices.DeleteFunc(list, func(w journal.OutputWire) bool { return d.Parted(id, w.To) })
}

// WireWithID returns the index of a wire in a list, or -1.
func WireWithID(list []journal.OutputWire, id journal.WireID) int {
	return slices.IndexFunc(list, func(w journal.OutputWire) bool { return w.ID == id })
}

// WireNamed returns the index of a wire in a list, or -1. Wires without a name
// are not found.
func WireNamed(list []journal.OutputWire, name string) int {
	return slices.IndexFunc(list, func(w journal.OutputWire) bool { return w.Name == name && name != "" })
}

// NoWire returns the error for a wire that does not exist.
func NoWire(name string) error {
	err := errtext.Gone("output wire", name)
	err.Remedy, err.IDs = "list the output wires to see their ids and names", map[string]string{"wire": name}
	return err
}
