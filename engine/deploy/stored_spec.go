package deploy

import (
	"encoding/json"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// StoredSpec is the part of a specification that a [journal.CreatureRow] keeps.
type StoredSpec struct {
	Description string          `json:"description,omitempty"`
	Species     string          `json:"species,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"` // without the attributes in Secret
	Secret      []string        `json:"secret,omitempty"`
	Given       []string        `json:"given,omitempty"`
	Limits      abi.Limits      `json:"limits,omitzero"`
	Restart     RestartPolicy   `json:"restart,omitzero"`
	Overflow    Overflow        `json:"overflow,omitempty"`
	Grants      journal.Grants  `json:"grants,omitzero"`
	Workers     Workers         `json:"workers,omitempty"`
	// Capabilities lack their secret settings.
	Capabilities []Capability `json:"capabilities,omitempty"`
}

// NewStoredSpec is the specification without its sensitive values.
func NewStoredSpec(s *CreatureSpec) StoredSpec {
	return StoredSpec{
		Description: s.Description, Species: s.Species, Config: WithoutSecrets(s), Secret: s.Secret, Given: s.Given, Limits: s.Limits, Restart: s.Restart,
		Overflow: s.Overflow, Grants: s.Grants, Workers: s.Workers,
		Capabilities: withoutSecrets(s.Capabilities),
	}
}

// WithoutSecrets is the configuration as a store may keep it.
func WithoutSecrets(s *CreatureSpec) json.RawMessage {
	if len(s.Secret) == 0 {
		return s.Config
	}
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(s.Config, &attributes); err != nil {
		return nil
	}
	for _, name := range s.Secret {
		delete(attributes, name)
	}
	return journal.JSON(attributes)
}
