package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// HiddenValue stands for the value of a sensitive attribute wherever a plan would
// show it.
const HiddenValue = "(sensitive value)"

// hidden are the sensitive attributes of configurations on both sides of a
// comparison. No row has them, so they are known of what runs and of what is
// applied, and of nothing that is saved.
type hidden struct {
	before, after map[CreatureID]attributes
}

// attributes are values of a configuration, as compact JSON.
type attributes map[string]string

// hiddenIn looks at what ran before, and at what an engine has now.
func hiddenIn(running map[CreatureID]settings, now *Engine) hidden {
	now.mu.RLock()
	defer now.mu.RUnlock()
	return hidden{before: sensitiveAmong(running), after: sensitiveAmong(now.settings())}
}

// settings are those of all creatures. The caller holds the mutation lock, to read
// at least.
func (e *Engine) settings() map[CreatureID]settings {
	out := make(map[CreatureID]settings, len(e.creatures))
	for id, c := range e.creatures {
		out[id] = c.settings
	}
	return out
}

// sensitiveAmong has an entry for every creature, also for one without anything
// sensitive.
func sensitiveAmong(all map[CreatureID]settings) map[CreatureID]attributes {
	out := make(map[CreatureID]attributes, len(all))
	for id, s := range all {
		out[id] = sensitiveOf(&s.spec)
	}
	return out
}

func sensitiveOf(s *CreatureSpec) attributes {
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

// changed tells what is different of a creature that ran, without telling what it
// is.
func (h hidden) changed(id CreatureID) (out []PlanChange) {
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
		return HiddenValue
	}
	return ""
}

// unknown are the sensitive attributes of a creature that was saved, where nobody
// knows what they were.
func (h hidden) unknown(id CreatureID) []string {
	if _, known := h.before[id]; known {
		return nil
	}
	return slices.Sorted(maps.Keys(h.after[id]))
}
