package kits

import (
	"context"
	"os"
	"path/filepath"
)

var assemblyScriptKit = Kit{
	Language: "AssemblyScript",
	Dirs:     []string{"sdk/assemblyscript"},
	Tool: func(root string) (version []string, missing string) {
		asc := compilerOfAssemblyScript(root)
		switch _, err := os.Stat(asc); {
		case !found("node"):
			return nil, "node"
		case err != nil:
			return nil, "AssemblyScript"
		}
		return []string{"node", asc, "--version"}, ""
	},
	Build: func(ctx context.Context, root, out string) error {
		env := []string{"ASC=" + compilerOfAssemblyScript(root)}
		return run(ctx, filepath.Join(root, "sdk", "assemblyscript"), env, "node", "examples/build.js", out)
	},
	ShoutBytes: 7_500,
	Place:      `picky\.ts:\d+`,
}

// compilerOfAssemblyScript is the compiler that make toolchains installs.
func compilerOfAssemblyScript(root string) string {
	return filepath.Join(root, "bin", "toolchains", "node_modules", "assemblyscript", "bin", "asc.js")
}
