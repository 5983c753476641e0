// Package topology derives graphs from creatures, channels and the edges
// between them, and keeps them derived while operations change the edges.
//
// Two creatures are in the same graph if and only if a path of shared channels
// joins them. Graphs are never declared. Every operation (ops.go) either fails
// and changes nothing, or succeeds and returns a [Delta] (delta.go) that says
// what became of the graphs concerned, step by step, so that whoever keeps
// environments and stores can follow.
//
// The package is pure: it has no clock, no randomness, no goroutine and no
// I/O, and never depends on the order of a map. Ids of what an operation
// creates come from the caller ([IDs]). A [State] belongs to one goroutine at
// a time.
//
// Every graph has a spanning tree whose Euler tour is kept in a balanced tree
// (tour.go, forest.go). Joining two trees costs the logarithm of their size.
// Removing an edge outside of the spanning tree costs nothing more; removing
// one inside looks for a replacement among the spare links of both sides in
// turn (crossing.go), so it costs the smaller side and not the graph. Neither a
// merge nor a split touches the members of the largest part. What is found by
// id or name is in an index that never moves much at a time (index.go).
package topology
