// Package fresh lets the tests run a second time with a fresh instance for
// every turn, which has to change nothing: TERRARIUM_FRESH=1 go test ./...
package fresh

import (
	"os"
	"slices"
)

// Instances reports whether engines under test run every turn on a fresh
// instance.
func Instances() bool { return os.Getenv("TERRARIUM_FRESH") != "" }

// Arguments are those of the command with the flag that makes its engine use
// fresh instances, if it is to and runs one.
func Arguments(args []string) []string {
	if !Instances() || len(args) < 2 || args[1] != "run" && args[1] != "exec" {
		return args
	}
	return slices.Insert(slices.Clone(args), 2, "--fresh-instances")
}
