package kits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
)

// TestJavaScriptPackage runs the tests of the package, packs it, and uses it elsewhere
// without a network.
func TestJavaScriptPackage(t *testing.T) {
	guesttools.Use(t)
	for _, tool := range []string{"node", "npm"} {
		if found(tool) {
			continue
		}
		guesttools.Missing(t, tool+" is missing")
	}
	env := []string{"npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false"}
	dir := t.TempDir()
	inFolder := func(dir string, args ...string) {
		t.Helper()
		if err := run(t.Context(), dir, env, args...); err != nil {
			t.Fatal(err)
		}
	}
	const kit = "../../js"
	inFolder(kit, "npm", "test")
	inFolder(kit, "npm", "pack", "--pack-destination", dir)

	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("packed %v, %v", archives, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	inFolder(dir, "npm", "install", archives[0])
	inFolder(dir, "node", "--input-type=module", "-e", `
		import { FakeHost } from "terrarium-creature";
		const host = new FakeHost({ message: (turn) => turn.output(turn.text()) });
		await host.message("in", "hello");
		if (host.outputs[0] !== "hello") throw new Error("wrong output");`)
}
