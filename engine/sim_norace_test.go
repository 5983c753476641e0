//go:build !race

package engine_test

// simSeeds is how many programs TestSimulation runs with TERRARIUM_EVERY, and without it
// half of them; TERRARIUM_SEEDS sets another number.
const simSeeds = 500
