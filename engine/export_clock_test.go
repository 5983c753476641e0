package engine

// SampleClock makes workers read the clock only from time to time, as they do with the
// real one. Call it before anything runs.
func (e *Engine) SampleClock() { e.core.sampled = true }

// Busy reports whether there is pending work.
func (e *Engine) Busy() bool { return e.core.idle.Busy() }
