package engine

// SampleClock has workers ask the clock once in a while, as they do with the real one.
// Nothing runs yet.
func (e *Engine) SampleClock() { e.core.sampled = true }
