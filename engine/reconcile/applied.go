package reconcile

import "github.com/seed47132306/terrarium/engine/journal"

// Applied reports what applying a deployment did, by address.
type Applied struct {
	Creatures map[string]journal.CreatureID // by address
	Channels  map[string]journal.ChannelID  // by address
	Resumed   []string                      // addresses that existed, in a saved session or running
	Changed   []string                      // resumed addresses that ran and got another instance: their module or settings changed
	Created   []string                      // addresses that did not exist
	Removed   []Removed                     // existed, but are not in the recipe
	// Problems are those of the engine. A deployment whose store cannot be read
	// has started over.
	Problems []error
}
