//go:build !race

package hostile

// instrumented is the factor of additional memory under the race detector,
// which is off.
const instrumented = 1
