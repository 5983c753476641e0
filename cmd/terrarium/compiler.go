package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
)

// compilerName names the internal command that compiles a module for another
// terrarium process.
const compilerName = "compiler"

func compilerCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: compilerName, Hidden: true, Args: cobra.NoArgs, Short: "Compile a module for another process",
		RunE: func(*cobra.Command, []string) error { return terrarium.ServeCompiler(s.in, s.out) },
	}
}

// compiler returns the command that starts such a process, or nil if the path of
// this program is unknown.
func compiler() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, compilerName}
}
