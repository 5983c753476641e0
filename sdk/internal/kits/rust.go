package kits

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

const rustTarget = "wasm32-unknown-unknown"

var rustKit = Kit{
	Language: "Rust",
	Dirs:     []string{"sdk/rust"},
	Tool: func(string) (version []string, missing string) {
		if !found("cargo") || !found("rustc") {
			return nil, "cargo"
		}
		// A compiler without the target says where its files would be.
		dir, err := exec.Command("rustc", "--print", "target-libdir", "--target", rustTarget).Output()
		if err != nil || !isDir(string(bytes.TrimSpace(dir))) {
			return nil, "the target " + rustTarget + " of rustc"
		}
		return []string{"rustc", "--version", "--verbose"}, ""
	},
	Build: func(ctx context.Context, root, out string) error {
		return rustBuild(ctx, root, out, "rust", Creatures, "--workspace")
	},
	Lines: func(ctx context.Context, root, out string) error {
		return rustBuild(ctx, root, out, "rust-lines", []string{picky}, "--package", picky,
			"--config", `profile.release.debug="line-tables-only"`, "--config", "profile.release.strip=false")
	},
	ShoutBytes: 37_000,
	Place:      `picky/src/lib\.rs:\d+`,
}

// rustBuild builds creatures with the caches in a folder below bin.
func rustBuild(ctx context.Context, root, out, cache string, names []string, options ...string) error {
	target := filepath.Join(root, "bin", cache)
	args := append([]string{"cargo", "build", "--release", "--target", rustTarget, "--offline", "--locked"}, options...)
	if err := run(ctx, filepath.Join(root, "sdk", "rust"), []string{"CARGO_TARGET_DIR=" + target}, args...); err != nil {
		return err
	}
	for _, name := range names {
		module, err := os.ReadFile(filepath.Join(target, rustTarget, "release", name+".wasm"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".wasm"), module, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
