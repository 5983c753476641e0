package kits

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
)

// TestNative runs the native tests of the kits for C, C++, Rust and Zig, among them those
// that compare the fake hosts with the host. The packages of npm have tests of their own.
func TestNative(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(root, "bin", "kits", "native")
	// Without zig build, whose package cannot have a file of another kit.
	zig := append(zigCommand(root), "test", "--cache-dir", filepath.Join(cache, "zig"))
	for _, c := range []struct {
		kit  *Kit
		dir  string
		args []string
	}{
		{&cKit, "c/examples", []string{"make", "OUT=" + t.TempDir(), "test"}},
		{&cppKit, "cpp/examples", []string{"make", "OUT=" + t.TempDir(), "test"}},
		{&rustKit, "rust", []string{"cargo", "test", "--offline", "--lib"}},
		{&zigKit, "zig", append(slices.Clip(zig), "src/terrarium.zig")},
		{&zigKit, "zig", append(slices.Clip(zig), "--dep", "probes", "-Mroot=src/probes_test.zig", "-Mprobes=../reference/probes.txt")},
	} {
		t.Run(c.kit.Language, func(t *testing.T) {
			guesttools.Use(t)
			missing := c.kit.Missing(root)
			if missing == "" && !found(c.args[0]) {
				missing = c.args[0]
			}
			if missing != "" {
				guesttools.Missing(t, missing+" is missing")
			}
			env := []string{"CARGO_TARGET_DIR=" + filepath.Join(cache, "rust"), "ZIG_GLOBAL_CACHE_DIR=" + filepath.Join(root, "bin", "kits", "cache-zig", "global")}
			if err := run(t.Context(), filepath.Join(root, "sdk", c.dir), env, c.args...); err != nil {
				t.Fatal(err)
			}
		})
	}
}
