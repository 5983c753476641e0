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

// Regrant completes the specification of a spawned creature that was restored, because no
// store has its secrets. A capability that lacks secret settings is replaced by the one that
// the recipe now grants to the species. One that the recipe does not grant stays as it is,
// without them. Secret attributes of its configuration get the values that the recipe now has
// for the species. d is the deployment of the creature; nil if it is not applied. changed
// reports whether anything was missing.
//
// The error has the code invalid_argument if the recipe has a secret but no value for it now:
// nothing may be applied. It has the code unavailable if no recipe has the value: the creature
// cannot run.
func Regrant(spec deploy.CreatureSpec, d *deploy.Deployment) (out deploy.CreatureSpec, changed bool, err error) {
	if d == nil || spec.Address != "" {
		return spec, false, nil
	}
	var of *deploy.CreatureSpec
	for i := range d.Species {
		if d.Species[i].Name == spec.Species {
			of = &d.Species[i].Spec
		}
	}
	out = spec
	if of != nil {
		out.Capabilities = slices.Clone(spec.Capabilities)
		for k := range out.Capabilities {
			saved := &out.Capabilities[k]
			at := slices.IndexFunc(of.Capabilities, func(c deploy.Capability) bool { return c.ID() == saved.ID() })
			if !saved.Lacking || at < 0 {
				continue
			}
			now := of.Capabilities[at]
			if err := hasSecrets(spec.Name, saved, &now); err != nil {
				return spec, false, err
			}
			*saved, changed = now, true
		}
	}
	missing := missingIn(&spec)
	if len(missing) == 0 {
		return out, changed, nil
	}
	out.Config, err = reconfigure(&spec, missing, of)
	return out, err == nil, err
}

// RegrantAll is Regrant for several creatures. It returns those that have changed. Creatures
// that cannot run stay as they are.
func RegrantAll(all map[journal.CreatureID]deploy.CreatureSpec, d *deploy.Deployment) (map[journal.CreatureID]deploy.CreatureSpec, error) {
	out := map[journal.CreatureID]deploy.CreatureSpec{}
	for id, s := range all {
		spec, changed, err := Regrant(s, d)
		if abi.CodeOf(err) == abi.InvalidArgument {
			return nil, err
		}
		if err == nil && changed {
			out[id] = spec
		}
	}
	return out, nil
}

// Stopped returns a specification that says whether its creature is stopped. What a creature
// was made from may be out of date.
func Stopped(spec deploy.CreatureSpec, stopped bool) deploy.CreatureSpec {
	spec.Stopped = stopped
	return spec
}

// Given lists the secret attributes that a configuration sets.
func Given(secret []string, config json.RawMessage) []string {
	attributes := attributesOf(config)
	var out []string
	for _, name := range secret {
		if attributes[name] != nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// WithValue lists those of the secret attributes that have a value in a configuration, each
// once. A value that was null when a creature was spawned need not be given again.
func WithValue(secret []string, config json.RawMessage) []string {
	attributes := attributesOf(config)
	var out []string
	for _, name := range secret {
		if raw := attributes[name]; raw != nil && string(raw) != "null" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// attributesOf are the attributes of a configuration that can be read.
func attributesOf(config json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if len(config) > 0 && json.Unmarshal(config, &out) != nil || out == nil {
		return map[string]json.RawMessage{}
	}
	return out
}

// missingIn lists the secret attributes without a value.
func missingIn(spec *deploy.CreatureSpec) []string {
	if len(spec.Secret) == 0 {
		return nil // of many creatures, most
	}
	attributes := attributesOf(spec.Config)
	return slices.DeleteFunc(slices.Clone(spec.Secret), func(name string) bool { return attributes[name] != nil })
}

// reconfigure gives missing attributes of a configuration the values of the species, which may
// be nil.
func reconfigure(spec *deploy.CreatureSpec, missing []string, of *deploy.CreatureSpec) (json.RawMessage, error) {
	config, now := attributesOf(spec.Config), map[string]json.RawMessage{}
	if of != nil {
		now = attributesOf(of.Config)
	}
	for _, name := range missing {
		problem := &abi.Error{Code: abi.Unavailable, Op: "apply", IDs: map[string]string{"creature": spec.Name, "species": spec.Species}}
		what := fmt.Sprintf("the sensitive attribute %s of the configuration of %s is not stored, ", name, spec.Name)
		switch value := now[name]; {
		case slices.Contains(spec.Given, name) || spec.Species == "":
			problem.Message = what + "and was given when the creature was added"
			problem.Remedy = "its state and its deliveries are kept; remove it, and add it again with the value"
		case value == nil:
			problem.Message = what + "and the recipe has none for the species " + spec.Species
			problem.Remedy = "its state and its deliveries are kept; add the attribute to the species again, or remove the creature"
		case string(value) == "null":
			problem.Code, problem.Message = abi.InvalidArgument, what+"and has no value in the recipe"
			problem.Remedy = "pass the value of its variable again, as in the earlier run"
		default:
			config[name] = value
			continue
		}
		return nil, problem
	}
	return journal.JSON(config), nil
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
			Remedy:  "pass the value of the variable again, as in the earlier run",
			IDs:     map[string]string{"creature": creature, "capability": now.ID()},
		}
	}
	return nil
}
