package kits

import (
	"context"
	"path/filepath"
)

var cKit = Kit{
	Language: "C",
	Dirs:     []string{"sdk/c"},
	Tool:     clang,
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			if err := clangBuild(ctx, root, out, name, "clang-14", "-std=c11", "-Isdk/c", "-c", "sdk/c/examples/"+name+".c"); err != nil {
				return err
			}
		}
		return nil
	},
	ShoutBytes: 2_000,
	Place:      `picky\.c:\d+`,
}

// clang looks for the compiler and the linker of C and C++.
func clang(string) (version []string, missing string) {
	for _, tool := range []string{"clang-14", "clang++-14", "wasm-ld-14"} {
		if !found(tool) {
			return nil, tool
		}
	}
	return []string{"clang-14", "--version"}, ""
}

// clangBuild compiles one creature with the command in compile, and links it.
func clangBuild(ctx context.Context, root, out, name string, compile ...string) error {
	object := filepath.Join(out, name+".o")
	compile = append(compile, "--target=wasm32", "-Wall", "-Wextra", "-Werror", "-Os", "-ffreestanding", "-mbulk-memory", "-o", object)
	if err := run(ctx, root, nil, compile...); err != nil {
		return err
	}
	return run(ctx, root, nil, "wasm-ld-14", "--no-entry", "--gc-sections", "--strip-all", "--compress-relocations", "--stack-first", "-z", "stack-size=16384",
		object, "-o", filepath.Join(out, name+".wasm"))
}
