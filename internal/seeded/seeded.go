// Package seeded has the random tests of a package draw the same on every machine and
// at every run: a test imports it for that, and a rule sees to it that those do that
// draw with rapid.
//
// New seeds are for long runs, which ask for them with RAPID_SEED=0, or for a certain
// one with its number. What they find is kept: rapid writes a file to
// testdata/rapid, which git ignores; under a name that says what it shows it is not
// ignored any more, and every run of the test begins with it.
package seeded

import (
	"cmp"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"

	_ "pgregory.net/rapid" // whose flag is there before this package begins
)

// usual is the seed of a run that asks for none. Its value says nothing.
const usual = "20260501"

func init() {
	if _, asked := os.LookupEnv("RAPID_SEED"); asked {
		return
	}
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.Set(usual) == nil {
		f.DefValue = usual
	}
}

// For is the seed of a test that draws by itself: the same at every run, or another at
// each if RAPID_SEED is 0. The test tells it when it fails, and RAPID_SEED repeats it.
func For(test string) uint64 {
	if n, asked := given(); asked {
		return cmp.Or(n, rand.Uint64())
	}
	h := fnv.New64a()
	h.Write([]byte(test))
	return h.Sum64()
}

// First is where a test begins that counts its seeds up: at 1, or at another number at
// each run if RAPID_SEED is 0.
func First() uint64 {
	n, asked := given()
	if asked && n == 0 {
		return rand.Uint64N(1 << 62)
	}
	return max(n, 1)
}

// given is what RAPID_SEED asks for.
func given() (n uint64, asked bool) {
	n, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	return n, err == nil
}
