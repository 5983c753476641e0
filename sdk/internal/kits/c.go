package kits

import (
	"context"
	"path/filepath"
	"slices"
)

// lineTables is the option of clang for debugging information that tells lines.
const lineTables = "-gline-tables-only"

var cKit = Kit{
	Language: "C",
	Dirs:     []string{"sdk/c"},
	Tool:     clang,
	Build: func(ctx context.Context, root, out string) error {
		for _, name := range Creatures {
			if err := cBuild(ctx, root, out, name); err != nil {
				return err
			}
		}
		return nil
	},
	Lines:      func(ctx context.Context, root, out string) error { return cBuild(ctx, root, out, picky, lineTables) },
	ShoutBytes: 1_100,
	Place:      `picky\.c:\d+`,
}

func cBuild(ctx context.Context, root, out, name string, options ...string) error {
	return clangBuild(ctx, root, out, name, append([]string{"clang-14", "-std=c11", "-Isdk/c", "-c", "sdk/c/examples/" + name + ".c"}, options...)...)
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
	link := []string{"wasm-ld-14", "--no-entry", "--gc-sections", "--stack-first", "-z", "stack-size=16384", object, "-o", filepath.Join(out, name+".wasm")}
	if !slices.Contains(compile, lineTables) {
		link = append(link, "--strip-all", "--compress-relocations")
	}
	return run(ctx, root, nil, link...)
}
