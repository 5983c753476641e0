// Package fresh lets the tests run a second time with a fresh instance for
// every turn, which must not change any result: TERRARIUM_FRESH=1 go test
// ./...
package fresh

import (
	"os"
	"slices"
)

// Instances reports whether engines under test run every turn on a fresh
// instance.
func Instances() bool { return os.Getenv("TERRARIUM_FRESH") != "" }

// Arguments returns the arguments of a command. If fresh instances are
// requested and the command runs an engine, it adds the flag for them.
func Arguments(args []string) []string {
	if !Instances() || len(args) < 2 || args[1] != "run" && args[1] != "exec" && args[1] != "dev" {
		return args
	}
	return slices.Insert(slices.Clone(args), 2, "--fresh-instances")
}
