package journal

import "slices"

// LetterHeirs says which child of the cut takes over a dead letter of a parent, by whom
// it was for and who sent it. It goes where its creature is; if that is in none of the
// parent's children, because it was removed or has been in another graph before, where
// its sender is; and if that is not there either, it stays with what is left of the
// graph: the child of the same id or else the first. -1: the parent has no child.
func (c *Cut) LetterHeirs(parent *SessionInfo) func(creature, sender CreatureID) int {
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
