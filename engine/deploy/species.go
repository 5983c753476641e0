package deploy

import "fmt"

// MaxSpecies bounds how many species of a deployment may be spawned: each keeps its
// compiled module as long as the engine runs.
const MaxSpecies = 256

// SpeciesSpec is a template of creatures.
type SpeciesSpec struct {
	Name        string // unique in its deployment
	Description string
	// Spec is the specification of every creature of the species. Its name, address,
	// graph, parent, edges and privilege are ignored.
	Spec CreatureSpec
	// Spawnable is how many creatures of the species may be alive at a time, not
	// counting those that the deployment declares; 0: none.
	Spawnable int
	Where     string // as in ChannelSpec
}

// Wrap adds the name of the species to an error.
func (s *SpeciesSpec) Wrap(err error) error {
	err = fmt.Errorf("species %q: %w", s.Name, err)
	if s.Where != "" {
		err = fmt.Errorf("%s: %w", s.Where, err)
	}
	return err
}
