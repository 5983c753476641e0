package heapwatch

// OnHeap returns the measure of how much of the Go heap the linear memories of all instances
// of a host use. It is 0 if the host does not report it.
func OnHeap(host any) func() int64 {
	return func() int64 {
		if h, ok := host.(interface{ HeapBytes() int64 }); ok {
			return h.HeapBytes()
		}
		return 0
	}
}
