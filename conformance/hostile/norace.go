//go:build !race

package hostile

// instrumented is how much more memory a process needs under the race detector,
// which is not there.
const instrumented = 1
