//go:build race

package engine_test

// simSeeds is how many programs TestSimulation runs.
const simSeeds = 500
