// Package specs checks and completes the specifications of creatures and
// species. Its functions depend only on their arguments, and change none of
// them.
//
// A configuration is a JSON object or empty. A limit is zero, which means its
// default, or was checked before.
package specs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Check refuses a specification from which no creature can be made, with any
// module.
func Check(spec *deploy.CreatureSpec) error {
	if err := deploy.CheckName("add_creature", "creature", spec.Name); err != nil {
		return err
	}
	if err := deploy.CheckDescription("add_creature", spec.Description); err != nil {
		return err
	}
	for _, wires := range [][]deploy.WireSpec{spec.Listen, spec.Send} {
		for i := range wires {
			if err := deploy.CheckAlias("add_creature", wires[i].Alias); err != nil {
				return err
			}
		}
	}
	return deploy.CheckLimits(&spec.Limits)
}

// CheckSpecies refuses an invalid species. seen says that another species has its name.
func CheckSpecies(s *deploy.SpeciesSpec, seen bool) error {
	switch {
	case s.Name == "":
		return errtext.Invalid("apply", "a species needs a name", "give it one")
	case seen:
		return &abi.Error{Code: abi.AlreadyExists, Op: "apply", Message: "another species has that name", Remedy: "rename one of them"}
	case s.Spawnable < 0:
		return errtext.Invalid("apply", fmt.Sprintf("spawnable is %d", s.Spawnable), "use 0 for none, or a positive number")
	}
	if err := deploy.CheckName("apply", "species", s.Name); err != nil {
		return err
	}
	if err := deploy.CheckDescription("apply", s.Description); err != nil {
		return err
	}
	if err := deploy.CheckLimits(&s.Spec.Limits); err != nil {
		return err
	}
	_, err := Config(s.Name, s.Spec.Config)
	return err
}

// Config reads the configuration of a creature or species of that name. It
// returns each attribute in the form of the ABI. Empty input means an object
// without attributes.
func Config(name string, raw json.RawMessage) (attributeTexts map[string][]byte, err error) {
	if isNone(raw) {
		return nil, nil
	}
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(raw, &attributes); err != nil {
		return nil, configError(name, raw, err)
	}
	texts := make(map[string][]byte, len(attributes))
	for name, value := range attributes {
		var s string
		if json.Unmarshal(value, &s) == nil && value[0] == '"' {
			texts[name] = []byte(s)
		} else {
			texts[name] = value
		}
	}
	return texts, nil
}

func isNone(raw json.RawMessage) bool { return len(bytes.TrimSpace(raw)) == 0 || string(raw) == "null" }

var none = []byte("{}")

// JSON is a configuration as a JSON object, which is not to be modified.
func JSON(raw json.RawMessage) []byte {
	if isNone(raw) {
		return none
	}
	return raw
}

// Overlay lays one configuration over another, attribute by attribute, for a creature of
// that name.
func Overlay(name string, base, top json.RawMessage) (json.RawMessage, error) {
	if len(top) == 0 {
		return base, nil
	}
	out := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{base, top} {
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, configError(name, raw, err)
		}
	}
	return journal.JSON(out), nil
}

func configError(name string, raw []byte, err error) error {
	return &abi.Error{
		Code: abi.InvalidArgument, Op: "add_creature", Message: "the configuration of " + name + " is not a JSON object",
		Remedy: `write an object such as {"key": "value"}`, Err: plainly.JSON(raw, err),
	}
}

// usualLimits are the limits that most creatures share.
var usualLimits = abi.DefaultLimits

// Limits fills in the defaults of limits that are zero. The result is not to be modified,
// because creatures share it.
func Limits(l abi.Limits) *abi.Limits {
	d := abi.DefaultLimits
	for _, f := range []struct{ v, def *int64 }{
		{&l.Memory, &d.Memory}, {&l.Fuel, &d.Fuel}, {&l.Message, &d.Message}, {&l.SendBytes, &d.SendBytes},
		{&l.Output, &d.Output}, {&l.LogBytes, &d.LogBytes}, {&l.StateKey, &d.StateKey},
		{&l.StateValue, &d.StateValue}, {&l.State, &d.State}, {&l.Calls, &d.Calls}, {&l.TimerBytes, &d.TimerBytes}, {&l.StoreRate, &d.StoreRate}, {&l.Stack, &d.Stack}, {&l.Table, &d.Table},
	} {
		if *f.v == 0 {
			*f.v = *f.def
		}
	}
	for _, f := range []struct{ v, def *int }{
		{&l.Sends, &d.Sends}, {&l.LogLines, &d.LogLines}, {&l.StateWrites, &d.StateWrites},
		{&l.Handles, &d.Handles}, {&l.Timers, &d.Timers}, {&l.Requests, &d.Requests}, {&l.Tools, &d.Tools}, {&l.Mailbox, &d.Mailbox}, {&l.TimerRate, &d.TimerRate},
	} {
		if *f.v == 0 {
			*f.v = *f.def
		}
	}
	if l.Deadline == 0 {
		l.Deadline = d.Deadline
	}
	if l == usualLimits {
		return &usualLimits
	}
	return &l
}

// OfRow returns the specification of a saved creature.
func OfRow(row journal.CreatureRow) (deploy.CreatureSpec, error) {
	var s deploy.StoredSpec
	if len(row.Spec) > 0 {
		if err := json.Unmarshal(row.Spec, &s); err != nil {
			return deploy.CreatureSpec{}, err
		}
	}
	return deploy.CreatureSpec{
		Address: row.Address, Name: row.Name, Description: s.Description, Module: row.Module, Species: s.Species, Config: s.Config, Secret: s.Secret, Given: s.Given,
		Limits: s.Limits, Restart: s.Restart, Overflow: s.Overflow, Grants: s.Grants,
		Privileged: row.Privileged, Stopped: row.Stopped, Parent: row.Parent, Workers: s.Workers, Capabilities: s.Capabilities,
	}, nil
}
