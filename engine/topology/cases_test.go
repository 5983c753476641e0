package topology_test

import (
	"slices"
	"strings"

	. "github.com/seed47132306/terrarium/engine/topology"
)

// cases lists the cases that random programs must reach for their agreement
// with the model to be meaningful.
var cases = []string{
	"merge", "split", "split in three", "creature renamed", "channel renamed", "channels unified", "collision rejected",
	"name taken", "connected with itself", "disconnected from itself", "moved to a detour", "channel moved alone",
	"id from before a merge", "merge taken back", "split taken back",
}

// reach records the cases of a successful operation.
func (p *program) reach(ops []Op, deltas []Delta) {
	for i, d := range deltas {
		is := map[string]bool{
			"merge": d.Kind == Merge, "split": d.Kind == Split, "split in three": d.Kind == Split && len(d.NewGraphs) > 2,
			"creature renamed":       slices.ContainsFunc(d.Renamed, func(r Renaming) bool { return r.Creature != "" }),
			"channel renamed":        slices.ContainsFunc(d.Renamed, func(r Renaming) bool { return r.Channel != "" }),
			"channels unified":       len(d.Unified) > 0,
			"channel moved alone":    d.Kind == None && slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Kind == ChannelMoved }),
			"moved to a detour":      slices.ContainsFunc(d.Channels[len(d.Channels)/2:], func(ch ChannelID) bool { return ch != "" }),
			"id from before a merge": endedID(ops[i], d),
		}
		switch op := ops[i].(type) {
		case Connect:
			is["connected with itself"] = op.From == op.To
		case Disconnect:
			is["disconnected from itself"] = op.From == op.To
		}
		for name, reached := range is {
			p.reached[name] = p.reached[name] || reached
		}
	}
}

// endedID reports whether an operation named a graph by an id that had ended.
func endedID(op Op, d Delta) bool {
	var named GraphID
	switch op := op.(type) {
	case AddCreature:
		named = op.Join
	case AddChannel:
		named = op.Graph
	}
	return named != "" && !slices.Contains(d.OldGraphs, named)
}

// reachTaken records the cases of operations that will be undone.
func (p *program) reachTaken(deltas []Delta) {
	for _, d := range deltas {
		if d.Kind != None {
			p.reached[d.Kind.String()+" taken back"] = true
		}
	}
}

// reachFailure records the cases of errors.
func (p *program) reachFailure(err error) {
	for name, text := range map[string]string{"collision rejected": " both use ", "name taken": "the name "} {
		p.reached[name] = p.reached[name] || strings.Contains(err.Error(), text)
	}
}
