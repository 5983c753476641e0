//go:build race

package hostile

// instrumented is the factor of additional memory under the race detector.
const instrumented = 10
