// Package diff says what a change of the graph would do: it compares the rows of two
// sets of saved graphs, and what deployments declare, and answers a [Plan].
package diff
