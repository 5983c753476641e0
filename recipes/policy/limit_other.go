//go:build !linux

package policy

// limitAddressSpace does nothing where the operating system has no such limit that
// holds: the heap is watched.
func limitAddressSpace(int64) {}
