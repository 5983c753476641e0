package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
)

// compilerName is the command that compiles a module for another terrarium. It
// is not for users.
const compilerName = "compiler"

func compilerCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: compilerName, Hidden: true, Args: cobra.NoArgs, Short: "Compile a module for another process",
		RunE: func(*cobra.Command, []string) error { return terrarium.ServeCompiler(s.in, s.out) },
	}
}

// compiler is the command that starts such a process; nil if the path of this
// program is not known.
func compiler() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, compilerName}
}
