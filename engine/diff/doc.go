// Package diff computes what a change of the graph would do: it compares the
// rows of two sets of saved graphs, and the declarations of deployments, and
// returns a [Plan].
package diff
