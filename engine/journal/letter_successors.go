package journal

import "slices"

// LetterSuccessors returns a function that determines which child of the cut takes over a
// dead letter of a parent. Its arguments are the creature and the sender of the letter, and
// its result is an index of c.Children, or -1 if the parent has no child. The letter
// follows its creature. If the creature is in none of the parent's children, because it was
// removed or was already in another graph, the letter follows its sender. If the sender is
// in none of them either, the letter stays with the rest of the graph: the child with the
// parent's graph id, or else the first child.
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
