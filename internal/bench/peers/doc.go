// Package peers measures other hosts of Wasm in Go as BenchmarkRequest of
// internal/bench measures terrarium: a payload to a guest and back, through the
// public interface of the host. It is a Go module of its own, so that terrarium
// does not depend on its peers. make bench leaves it out if it does not build,
// for example without a network.
package peers
