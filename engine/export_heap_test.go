package engine

// HeapGauge is a measure of the heap that a test provides.
type HeapGauge struct {
	LiveNow    func() (bytes int64, cycle uint64)
	CollectNow func()
}

func (g HeapGauge) Live() (int64, uint64) { return g.LiveNow() }
func (g HeapGauge) Collect()              { g.CollectNow() }

// GaugeHeap replaces the measure of the heap. Call it before anything runs.
func (e *Engine) GaugeHeap(g HeapGauge) { e.core.heap.SetGauge(g) }
