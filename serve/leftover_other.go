//go:build !unix

package serve

// refusedByPeer takes every failure for a socket without a process: the codes differ.
func refusedByPeer(error) bool { return true }
