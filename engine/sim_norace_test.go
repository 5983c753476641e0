//go:build !race

package engine_test

// simSeeds is how many programs TestSimulation runs; TERRARIUM_SEEDS asks for more.
const simSeeds = 500
