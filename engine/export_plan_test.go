package engine

// Compare says what is different between two sets of saved graphs, as a plan
// does.
func Compare(before, after []SavedGraph) *Plan { return newComparison(before, after).plan() }

// Rows are the graphs that are running, as a storage would save them.
func Rows(e *Engine) []SavedGraph { return e.rows() }
