// Package seeded makes the random tests of a package draw the same values on
// every machine and in every run. Tests that draw with rapid import it, and a
// rule enforces that.
//
// Long runs use new seeds: RAPID_SEED=0 requests a new one, another number a
// certain one. Failures are kept: rapid writes a file to testdata/rapid, which
// git ignores. Renamed after the fault that it shows, the file is no longer
// ignored, and every run of the test starts with it.
package seeded

import (
	"cmp"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	_ "pgregory.net/rapid" // defines its flag before this package is initialized
)

// usual is the default seed. Its value has no meaning.
const usual = "20260501"

func init() {
	if _, asked := os.LookupEnv("RAPID_SEED"); asked {
		return
	}
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.Set(usual) == nil {
		f.DefValue = usual
	}
}

// For returns the seed of a test that draws without rapid: the same in every
// run, or a different one in each run if RAPID_SEED is 0. A failing test
// prints the seed, and RAPID_SEED repeats it.
func For(test string) uint64 {
	if n, asked := given(); asked {
		return cmp.Or(n, rand.Uint64())
	}
	h := fnv.New64a()
	h.Write([]byte(test))
	return h.Sum64()
}

// First returns the first seed of a test that counts its seeds up: 1, or a
// different number in each run if RAPID_SEED is 0.
func First() uint64 {
	n, asked := given()
	if asked && n == 0 {
		return rand.Uint64N(1 << 62)
	}
	return max(n, 1)
}

// given returns the value of RAPID_SEED.
func given() (n uint64, asked bool) {
	n, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	return n, err == nil
}

// Part reports whether a test has case i now. Tests of many cases run one case in n, always
// the same ones, so that make test stays short. make test-every sets TERRARIUM_EVERY and runs
// all of them, as .ci/run does. A flag like -run TestScripts/copy also runs the case that it
// names.
func Part(i, n int) bool {
	return i%n == 0 || os.Getenv("TERRARIUM_EVERY") != "" || named()
}

// Long skips a long test that covers what shorter ones cover in part, so that make test stays
// short. make test-every and .ci/run have it, and a flag -run that names tests runs it too.
func Long(t testing.TB) {
	t.Helper()
	f := flag.Lookup("test.run")
	if os.Getenv("TERRARIUM_EVERY") == "" && (f == nil || f.Value.String() == "") {
		t.Skip("this test is long: make test-every runs it")
	}
}

// named reports whether the command line of the test names a case.
func named() bool {
	f := flag.Lookup("test.run")
	return f != nil && strings.Contains(f.Value.String(), "/")
}
