package journal

import "slices"

// LetterSuccessors says which child of the cut takes over a dead letter of a parent, given its
// creature and its sender. The letter follows its creature. If the creature is in none of
// the parent's children, because it was removed or was already in another graph, the
// letter follows its sender. If the sender is in none either, the letter stays with the
// rest of the graph: the child of the same id, or else the first. -1: the parent has no
// child.
func (c *Cut) LetterSuccessors(parent *SessionInfo) func(creature, sender CreatureID) int {
	homes, rest := map[CreatureID]int{}, -1
	for i := range c.Children {
		child := &c.Children[i]
		if !slices.Contains(child.Parents, parent.Session) {
			continue
		}
		for _, id := range child.Creatures {
			homes[id] = i
		}
		if rest < 0 || child.Graph == parent.Graph {
			rest = i
		}
	}
	return func(creature, sender CreatureID) int {
		if i, there := homes[creature]; there {
			return i
		}
		if i, there := homes[sender]; there {
			return i
		}
		return rest
	}
}

// Deprecated: use [Cut.LetterSuccessors].
func (c *Cut) LetterHeirs(parent *SessionInfo) func(creature, sender CreatureID) int {
	return c.LetterSuccessors(parent)
}
