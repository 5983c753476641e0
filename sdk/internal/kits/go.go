package kits

import (
	"context"
	"path/filepath"
)

var goKit = Kit{
	Language: "Go",
	Dirs:     []string{"sdk/go"},
	Tool: func(string) (version []string, missing string) {
		if !found("go") {
			return nil, "go"
		}
		return []string{"go", "version"}, ""
	},
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			err := run(ctx, root, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false",
				"-ldflags=-s -w", "-o", filepath.Join(out, name+".wasm"), "./sdk/go/examples/"+name)
			if err != nil {
				return err
			}
		}
		return nil
	},
	ShoutBytes: 1_980_000,
	Place:      `picky/main\.go:\d+`,
}
