// Package search finds events by what they say. An index of their words ([Extend]) is only a
// help: [Run] reads what it does not have in the stores, and all of it if it cannot be used.
//
// # States of an index
//
// Nothing is in an index that is not in the stores, so whatever is wrong with it, it is made
// again. Each transition is one transaction; several processes may work on it at once.
//
//	missing               -> empty     Extend, and everything else that may write
//	empty, behind         -> behind    Extend adds a batch of events and notes the cursor behind them
//	behind                -> complete  Extend, when no event is left behind the cursor
//	complete              -> behind    something is logged
//	of an older version   -> empty     Extend
//	of another directory  -> empty     Extend, which finds no session for its cursor; Run does not use it
//	mostly of what is gone -> empty    Trim
//	damaged               -> missing   the owner of the directory sets it aside
//
// What is no index at all, a directory or a database of another application, is left alone,
// and so is an index of a newer program: [Index.Usable] and [Run] tell why it is not used.
//
// A search goes through its own: it divides the query, finds out which events the session
// has if it is about one, searches what the index lacks in a temporary index, which is the
// newest, and then the index, until it has found one more than is wanted.
package search
