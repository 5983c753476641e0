package deploy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// CapabilityKind is a kind of capability. Programs can add others. It is stable.
type CapabilityKind string

// HTTPCapability is the kind of the function http of the ABI.
const HTTPCapability CapabilityKind = "http"

// Capability is a capability that a recipe has declared and granted to a creature.
type Capability struct {
	Kind     CapabilityKind  `json:"kind"`
	Name     string          `json:"name"`
	Settings json.RawMessage `json:"settings,omitempty"` // a JSON object
	// Secret names the settings that no store may keep. A creature that is restored without
	// its recipe lacks them, and its requests wait until the recipe is applied.
	Secret []string `json:"secret,omitempty"`
	// From lists, for each setting that may be secret, the variables that its value comes
	// from, in the form in which the recipe refers to them, such as var.key.
	From map[string][]string `json:"from,omitempty"`
	// Lacking reports that the values of Secret are not in Settings.
	Lacking bool `json:"lacking,omitempty"`
}

// ID returns the kind and the name, such as http.alerts.
func (c *Capability) ID() string { return string(c.Kind) + "." + c.Name }

// Shown returns the settings as plans show them, as JSON.
func (c *Capability) Shown() string {
	var settings map[string]json.RawMessage
	if json.Unmarshal(c.Settings, &settings) != nil {
		return "{}"
	}
	for _, name := range c.Secret {
		settings[name] = journal.JSON(HiddenValue)
	}
	return string(journal.JSON(settings))
}

// withoutSecrets returns the capabilities as a store may keep them.
func withoutSecrets(list []Capability) []Capability {
	var out []Capability
	for _, c := range list {
		var settings map[string]json.RawMessage
		if len(c.Secret) > 0 && json.Unmarshal(c.Settings, &settings) == nil {
			for _, name := range c.Secret {
				delete(settings, name)
			}
			c.Settings, c.Lacking = journal.JSON(settings), true
		}
		out = append(out, c)
	}
	return out
}

// SecretsFrom lists the variables from which the values of Secret come.
func (c *Capability) SecretsFrom() []string {
	var out []string
	for _, name := range c.Secret {
		for _, v := range c.From[name] {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// With returns the event with members of its request replaced.
func (ev *PolicyEvent) With(members json.RawMessage) *PolicyEvent {
	out := *ev
	out.Request = merged(ev.Request, members)
	return &out
}

// merged returns the members of two objects; those of the second take precedence.
func merged(a, b json.RawMessage) json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, object := range []json.RawMessage{a, b} {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) == nil {
			maps.Copy(out, members)
		}
	}
	return journal.JSON(out)
}
