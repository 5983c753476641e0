package engine

// HeapGauge is a measure of the heap that a test provides.
type HeapGauge struct {
	Live    func() (bytes int64, cycle uint64)
	Collect func()
}

func (g HeapGauge) live() (int64, uint64) { return g.Live() }
func (g HeapGauge) collect()              { g.Collect() }

// GaugeHeap replaces the measure of the heap. Nothing runs yet.
func (e *Engine) GaugeHeap(g HeapGauge) { e.heap.gauge = g }
