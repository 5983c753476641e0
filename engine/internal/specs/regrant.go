package specs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Regrant completes a saved creature that was spawned: no store has the secret settings of its
// capabilities. It gets those capabilities as the recipe now grants them to the species. What
// the recipe does not grant stays as it is, and lacks them. d is the deployment of the
// creature; nil if it is not applied.
//
// The error is for a secret setting that the recipe has, without a value now.
func Regrant(row journal.CreatureRow, d *deploy.Deployment) (journal.CreatureRow, error) {
	var r map[string]json.RawMessage
	var s deploy.StoredSpec
	if d == nil || json.Unmarshal(row.Spec, &s) != nil || json.Unmarshal(row.Spec, &r) != nil {
		return row, nil // revive reports what cannot be read
	}
	changed := false
	for i := range d.Species {
		if d.Species[i].Name != s.Species {
			continue
		}
		for k := range s.Capabilities {
			saved := &s.Capabilities[k]
			at := slices.IndexFunc(d.Species[i].Spec.Capabilities, func(c deploy.Capability) bool { return c.ID() == saved.ID() })
			if !saved.Lacking || at < 0 {
				continue
			}
			now := d.Species[i].Spec.Capabilities[at]
			if err := hasSecrets(row.Name, saved, &now); err != nil {
				return row, err
			}
			*saved, changed = now, true
		}
	}
	if changed {
		r["capabilities"] = journal.JSON(s.Capabilities)
		row.Spec = journal.JSON(r)
	}
	return row, nil
}

// hasSecrets refuses a capability that had a secret setting, and whose recipe still takes it
// from a variable, but has no value for it now.
func hasSecrets(creature string, saved, now *deploy.Capability) error {
	for _, name := range saved.Secret {
		from := now.From[name]
		if slices.Contains(now.Secret, name) || len(from) == 0 {
			continue
		}
		return &abi.Error{
			Code: abi.InvalidArgument, Op: "apply",
			Message: fmt.Sprintf("the creature %s continues with the capability %s, and its setting %s has no value: it comes from %s, and sensitive values are not stored", creature, now.ID(), name, strings.Join(from, " and ")),
			Remedy:  "give the variable its value again, as in the earlier run",
			IDs:     map[string]string{"creature": creature, "capability": now.ID()},
		}
	}
	return nil
}
