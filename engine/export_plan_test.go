package engine

// Compare says what is different between two sets of saved graphs, as a plan
// does.
func Compare(before, after []SavedGraph) *Plan { return newComparison(before, after).plan() }
