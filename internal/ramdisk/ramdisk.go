// Package ramdisk lets tests keep their files in memory if the system has
// room: creating, syncing and removing files on a disk would take a third of
// the time of all tests. The effect of a power loss is tested with losevfs,
// which tracks what was synced wherever the files are. A killed process loses
// nothing that it wrote, on disk or in memory.
//
// With TMPDIR set, files are in that directory, which may be on a disk.
// Benchmarks use the disk too, because they also measure syncing.
package ramdisk

import (
	"flag"
	"fmt"
	"os"
)

// Runner runs tests, as a *testing.M does.
type Runner interface{ Run() int }

// Tests returns a Runner that keeps temporary directories, also those of
// started processes, in memory if possible.
func Tests(m Runner) Runner { return tests{m} }

type tests struct{ Runner }

// Run runs the tests and removes their files from memory.
func (t tests) Run() int {
	const variable = "TMPDIR"
	if os.Getenv(variable) != "" || benchmarks() || !roomy(where) {
		return t.Runner.Run()
	}
	dir, err := os.MkdirTemp(where, "terrarium-tests-")
	if err != nil {
		return t.Runner.Run() // the memory directory is not usable
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

// benchmarks reports whether the command line requests benchmarks.
func benchmarks() bool {
	flag.Parse()
	f := flag.Lookup("test.bench")
	return f != nil && f.Value.String() != ""
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "files in memory:", err)
	return 1
}
