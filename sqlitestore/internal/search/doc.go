// Package search finds events by their content. An index of their words ([Extend]) only
// makes this faster: [Run] reads what the index lacks from the stores, and everything if
// the index cannot be used.
//
// # States of an index
//
// Everything in an index is also in the stores, so an index that is damaged or not
// current can always be made again. Each transition is one transaction; several processes
// may work on it at once.
//
//	missing               -> empty     Extend, and everything else that may write
//	empty, behind         -> behind    Extend adds a batch of events and notes the cursor after them
//	behind                -> complete  Extend, when no event is left after the cursor
//	complete              -> behind    something is logged
//	of an older version   -> empty     Extend
//	of another directory  -> empty     Extend, which finds no session for its cursor; Run does not use it
//	mostly pruned events  -> empty     Trim
//	damaged               -> missing   the owner of the directory sets it aside
//
// A directory or a database of another application in its place is left alone, and so is an
// index of a newer program: [Index.Usable] and [Run] say why it is not used.
//
// A search parses the query and, if it is about one session, determines the events of that
// session. It first searches the newest events, which the index lacks, in a temporary
// index, and then the index, until it has found one more than requested.
package search
