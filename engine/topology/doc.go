// Package topology derives graphs from creatures, channels and the edges
// between them, and updates them while operations change the edges.
//
// Two creatures are in the same graph if and only if a path of shared channels
// joins them. Graphs are never declared. Every operation (ops.go) either fails
// and changes nothing, or succeeds and returns a [Delta] (delta.go) that
// describes the change of the graphs concerned, step by step, so that the
// engine can update environments and stores.
//
// The package is pure: it has no clock, no randomness, no goroutine and no
// I/O, and never depends on the order of a map. Ids for new creatures,
// channels and graphs come from the caller ([IDs]). Only one goroutine at a
// time may use a [State].
//
// Every graph has a spanning tree whose Euler tour is kept in a balanced tree
// (tour.go, forest.go). Joining two trees costs the logarithm of their size.
// Removing an edge outside the spanning tree costs nothing more. Removing one
// inside searches for a replacement among the spare links of both sides in
// turn (crossing.go), so the cost depends on the smaller side and not on the
// graph. Neither a merge nor a split touches the members of the largest part.
// Lookups by id or name use an index that never moves many entries at once
// (index.go).
package topology
