package diff

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Hidden holds the sensitive attributes of configurations on both sides of a
// comparison. No row has them, so they are known only for running creatures
// and for the deployments being applied, not for saved ones.
type Hidden struct {
	before, after map[journal.CreatureID]attributes
}

// attributes holds values of a configuration, as compact JSON.
type attributes map[string]string

// NewHidden compares the specifications of the creatures before and after a
// change.
func NewHidden(before, after map[journal.CreatureID]*deploy.CreatureSpec) Hidden {
	return Hidden{before: sensitiveAmong(before), after: sensitiveAmong(after)}
}

// SpecsOf are the specifications of creatures.
func SpecsOf[T any](all map[journal.CreatureID]T, of func(T) *deploy.CreatureSpec) map[journal.CreatureID]*deploy.CreatureSpec {
	out := make(map[journal.CreatureID]*deploy.CreatureSpec, len(all))
	for id, s := range all {
		out[id] = of(s)
	}
	return out
}

// sensitiveAmong returns an entry for every creature, even one without
// sensitive attributes.
func sensitiveAmong(all map[journal.CreatureID]*deploy.CreatureSpec) map[journal.CreatureID]attributes {
	out := make(map[journal.CreatureID]attributes, len(all))
	for id, spec := range all {
		out[id] = sensitiveOf(spec)
	}
	return out
}

func sensitiveOf(s *deploy.CreatureSpec) attributes {
	var all map[string]json.RawMessage
	if len(s.Secret) == 0 || json.Unmarshal(s.Config, &all) != nil {
		return nil
	}
	out := attributes{}
	for _, name := range s.Secret {
		var b bytes.Buffer
		if raw, there := all[name]; there && json.Compact(&b, raw) == nil {
			out[name] = b.String()
		}
	}
	return out
}

// changed lists which sensitive attributes of a running creature differ,
// without their values.
func (h Hidden) changed(id journal.CreatureID) (out []PlanChange) {
	was, known := h.before[id]
	if !known {
		return nil
	}
	is := h.after[id]
	for _, name := range slices.Sorted(maps.Keys(joined(was, is))) {
		before, had := was[name]
		after, has := is[name]
		if had != has || before != after {
			out = append(out, PlanChange{What: "config", Of: name, Before: shownIf(had), After: shownIf(has)})
		}
	}
	return out
}

func shownIf(there bool) string {
	if there {
		return deploy.HiddenValue
	}
	return ""
}

// unknown returns the sensitive attributes of a saved creature, whose previous
// values are unknown.
func (h Hidden) unknown(id journal.CreatureID) []string {
	if _, known := h.before[id]; known {
		return nil
	}
	return slices.Sorted(maps.Keys(h.after[id]))
}
