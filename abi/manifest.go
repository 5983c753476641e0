package abi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Manifest is a module's description of itself in the custom section
// [ManifestSection], as JSON. A module without one still runs.
type Manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version,omitempty"`
	Description  string            `json:"description,omitempty"`
	ABI          []int             `json:"abi,omitempty"`          // versions it can use; empty means 1
	Listen       []ManifestChannel `json:"listen,omitempty"`       // aliases it listens on
	Send         []ManifestChannel `json:"send,omitempty"`         // aliases it sends on
	Capabilities []string          `json:"capabilities,omitempty"` // grants that it needs
	Config       json.RawMessage   `json:"config,omitempty"`       // JSON Schema of its configuration
	Licence      string            `json:"licence,omitempty"`      // SPDX expression
}

// ManifestChannel is a channel that a module listens or sends on, by alias.
type ManifestChannel struct {
	Alias       string `json:"alias"`
	Description string `json:"description,omitempty"`
	Optional    bool   `json:"optional,omitempty"`
}

// ParseManifest decodes the content of a manifest section. Unknown members are
// ignored, so that later versions can add some.
func ParseManifest(data []byte) (*Manifest, error) {
	if len(data) > MaxManifestBytes {
		return nil, &Error{Code: TooLarge, Message: fmt.Sprintf("the manifest has %d bytes; at most %d are allowed", len(data), MaxManifestBytes)}
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&m); err != nil {
		return nil, &Error{Code: InvalidArgument, Message: "the manifest is not a JSON object", Remedy: "see the manifest in abi/README.md", Err: err}
	}
	if len(m.ABI) == 0 {
		m.ABI = []int{Version}
	}
	return &m, nil
}
