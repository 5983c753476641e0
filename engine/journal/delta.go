package journal

import "github.com/seed47132306/terrarium/engine/topology"

// Delta describes what an operation did to the graphs.
type Delta struct {
	Kind      CutKind      `json:"kind"`              // none, merge or split
	OldGraphs []GraphID    `json:"old_graphs"`        // the graphs concerned, before
	NewGraphs []GraphID    `json:"new_graphs"`        // the graphs concerned, after
	Affected  []CreatureID `json:"affected"`          // creatures whose graph id changed
	Renamed   []Renamed    `json:"renamed"`           // what a merge renamed because both graphs used the name
	Unified   []Unified    `json:"unified,omitempty"` // channels that on_collision unify made into one
}

// Unified describes a channel that a merge made a part of another channel of the same name.
type Unified struct {
	Survivor ChannelID `json:"survivor"` // channel that remains
	Absorbed ChannelID `json:"absorbed"` // channel that became a part of the other
}

// Renamed describes a creature or channel to which a merge gave another name.
type Renamed struct {
	Creature CreatureID `json:"creature,omitempty"` // the creature, if it is a creature
	Channel  ChannelID  `json:"channel,omitempty"`  // the channel, if it is a channel
	Old      string     `json:"old"`                // name before the merge
	New      string     `json:"new"`                // name after the merge
}

// NewDelta converts a delta of the topology to the form that callers get.
func NewDelta(d *topology.Delta) Delta {
	out := Delta{
		Kind: CutKind(d.Kind.String()), OldGraphs: append([]GraphID{}, d.OldGraphs...), NewGraphs: append([]GraphID{}, d.NewGraphs...),
		Affected: append([]CreatureID{}, d.Affected...), Renamed: []Renamed{}, // never null in JSON
	}
	for _, r := range d.Renamed {
		out.Renamed = append(out.Renamed, Renamed(r))
	}
	for _, u := range d.Unified {
		out.Unified = append(out.Unified, Unified(u))
	}
	return out
}
