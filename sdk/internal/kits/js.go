package kits

import (
	"context"
	"path/filepath"
)

// The module that runs the scripts is kept in plugins/js, so only Go is needed.
var jsKit = Kit{
	Language: "JavaScript",
	Dirs:     []string{"sdk/js", "plugins/js", "abi/pack"},
	Tool: func(string) (version []string, missing string) {
		if !found("go") {
			return nil, "go"
		}
		return []string{"go", "version"}, ""
	},
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			err := run(ctx, root, nil, "go", "run", "./cmd/terrarium", "pack", "--js", "sdk/js/examples/"+name+".js", "-o", filepath.Join(out, name+".wasm"))
			if err != nil {
				return err
			}
		}
		return nil
	},
	ShoutBytes: 800_000,
	Place:      `picky\.js:\d+`,
}
