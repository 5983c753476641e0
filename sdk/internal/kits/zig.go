package kits

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

var zigKit = Kit{
	Language: "Zig",
	Dirs:     []string{"sdk/zig"},
	Tool: func(root string) (version []string, missing string) {
		zig := zigCommand(root)
		if zig == nil {
			return nil, "zig"
		}
		return append(zig, "version"), ""
	},
	Build: func(ctx context.Context, root, out string) error { return zigBuild(ctx, root, out, Creatures) },
	Lines: func(ctx context.Context, root, out string) error {
		return zigBuild(ctx, root, out, []string{picky}, "-Dstrip=false")
	},
	ShoutBytes: 1_300,
	Place:      `picky\.zig:\d+`,
}

func zigBuild(ctx context.Context, root, out string, names []string, options ...string) error {
	// The caches make a second build fast. bin is ignored by git.
	cache := filepath.Join(root, "bin", "kits", "cache-zig")
	prefix, err := os.MkdirTemp(filepath.Dir(out), "building-zig-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(prefix)
	args := append(zigCommand(root), "build", "--prefix", prefix, "--cache-dir", filepath.Join(cache, "local"))
	args = append(args, options...)
	env := []string{"ZIG_GLOBAL_CACHE_DIR=" + filepath.Join(cache, "global")}
	if err := run(ctx, filepath.Join(root, "sdk", "zig", "examples"), env, args...); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(prefix, "bin", name+".wasm"), filepath.Join(out, name+".wasm")); err != nil {
			return fmt.Errorf("the build has no %s: %w", name, err)
		}
	}
	return nil
}

// zigCommand starts the compiler: zig, that of make toolchains, or the package ziglang of
// Python; nil if there is none.
func zigCommand(root string) []string {
	if found("zig") {
		return []string{"zig"}
	}
	// The folder of the build is another one, so that the path is absolute.
	installed, err := filepath.Abs(filepath.Join(root, "bin", "toolchains", "python", "ziglang", "zig"))
	if err == nil && found(installed) {
		return []string{installed}
	}
	python := []string{"python3", "-m", "ziglang"}
	if exec.Command(python[0], append(python[1:], "version")...).Run() != nil {
		return nil
	}
	return python
}
