//go:build race

package engine_test

// simSeeds is how many programs TestSimulation runs; TERRARIUM_SEEDS sets another number.
const simSeeds = 200
