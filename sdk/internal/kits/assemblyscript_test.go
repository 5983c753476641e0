package kits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/internal/guesttools"
)

// TestAssemblyScriptPackage runs the tests of the package, packs it, installs the package
// elsewhere without a network, and builds a creature with what is installed.
func TestAssemblyScriptPackage(t *testing.T) {
	guesttools.Use(t)
	const root = "../../.."
	missing := assemblyScriptKit.Missing(root)
	if missing == "" && !found("npm") {
		missing = "npm"
	}
	if missing != "" {
		guesttools.Missing(t, missing+" is missing")
	}
	asc, err := filepath.Abs(compilerOfAssemblyScript(root))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"ASC=" + asc, "npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false"}
	kit, dir := filepath.Join(root, "sdk", "assemblyscript"), t.TempDir()
	inFolder := func(dir string, args ...string) {
		t.Helper()
		if err := run(t.Context(), dir, env, args...); err != nil {
			t.Fatal(err)
		}
	}
	inFolder(kit, "npm", "test")
	inFolder(kit, "npm", "pack", "--pack-destination", dir)

	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("packed %v, %v", archives, err)
	}
	source, err := os.ReadFile(filepath.Join(kit, "examples", "scout.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"package.json": []byte("{}"), "scout.ts": source} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inFolder(dir, "npm", "install", archives[0])
	inFolder(dir, "node", asc, "scout.ts", "-O", "--runtime", "minimal", "-o", "scout.wasm")
	inFolder(dir, "node", "--input-type=module", "-e",
		`import { FakeHost } from "terrarium-assemblyscript/fake"; new FakeHost("scout.wasm").start()`)
}
