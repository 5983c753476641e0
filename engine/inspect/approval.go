package inspect

import "github.com/seed47132306/terrarium/engine/journal"

// Approval is a question of a policy, and the creature whose turn waits for the answer.
type Approval struct {
	journal.ApprovalRow
	Creature journal.CreatureID
	Name     string // of the creature
	Graph    journal.GraphID
	Behind   uint64 // deliveries that wait in its mailbox meanwhile
}
