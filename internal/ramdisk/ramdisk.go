// Package ramdisk has tests keep their files in memory where the system has room
// for that: making, syncing and removing files on a disk would take a third of the
// time that all tests take together. What a power loss does to files is tested with
// losevfs, which knows what was synced wherever the files are, and a process that is
// killed loses nothing that it wrote to either.
//
// With TMPDIR set, files are in that directory, and so on a disk if it is on one.
// Benchmarks use the disk, too: syncing is a part of what they measure.
package ramdisk

import (
	"flag"
	"fmt"
	"os"
)

// Runner runs tests, as a *testing.M does.
type Runner interface{ Run() int }

// Tests are tests whose temporary directories, and those of the processes they
// start, are in memory if possible.
func Tests(m Runner) Runner { return tests{m} }

type tests struct{ Runner }

// Run runs the tests and removes what they left in memory.
func (t tests) Run() int {
	const variable = "TMPDIR"
	if os.Getenv(variable) != "" || benchmarks() || !roomy(where) {
		return t.Runner.Run()
	}
	dir, err := os.MkdirTemp(where, "terrarium-tests-")
	if err != nil {
		return t.Runner.Run() // somebody else's memory, then
	}
	if err := os.Setenv(variable, dir); err != nil {
		return failed(err)
	}
	code := t.Runner.Run()
	if err := os.Unsetenv(variable); err != nil {
		return failed(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return failed(err)
	}
	return code
}

// benchmarks reports whether the command line asks for benchmarks.
func benchmarks() bool {
	flag.Parse()
	f := flag.Lookup("test.bench")
	return f != nil && f.Value.String() != ""
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "files in memory:", err)
	return 1
}
