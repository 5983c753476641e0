//go:build race

package hostile

// instrumented is how much more memory a process needs under the race detector.
const instrumented = 10
