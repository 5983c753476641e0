// Package requirements contains the sets of requirements that the conformance suites score:
// the numbered rules of a contract, each with the checks that prove it, or with the reason
// why nothing can.
package requirements

import (
	"bytes"
	"embed"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed abi-1.yaml store-1.yaml
var files embed.FS

// Set is the requirements of one revision of a contract. A revision is frozen: a later
// one is another file.
type Set struct {
	Name         string        `yaml:"name"`     // such as "terrarium ABI 1"
	Revision     string        `yaml:"revision"` // the month, such as "2026-11"
	Pages        []string      `yaml:"pages"`    // that have the rules, from the top of the repository
	Requirements []Requirement `yaml:"requirements"`
}

// Requirement is a numbered rule and what proves it: checks, or NotScored says why none
// can.
type Requirement struct {
	Rule      string   `yaml:"rule"`
	Words     string   `yaml:"words"` // those of the page, without markup
	Creature  []string `yaml:"creature,omitempty"`
	Host      []string `yaml:"host,omitempty"`
	Store     []string `yaml:"store,omitempty"`
	NotScored string   `yaml:"not_scored,omitempty"`
}

// Load returns a set by the name of its file, such as "abi-1".
func Load(name string) (*Set, error) {
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no set of requirements %q", name)
	}
	var s Set
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &s, nil
}

// Proofs returns the checks of all suites.
func (r *Requirement) Proofs() []string {
	return append(append(append([]string{}, r.Creature...), r.Host...), r.Store...)
}
