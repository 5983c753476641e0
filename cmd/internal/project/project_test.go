package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	_ "github.com/seed47132306/terrarium/internal/seeded"
)

func TestMain(m *testing.M) { os.Exit(ramdisk.Tests(m).Run()) }

// toolchains puts the compilers that make toolchains installs on the PATH.
func toolchains(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	path := []string{os.Getenv("PATH")}
	for _, dir := range []string{"node_modules/.bin", "python/ziglang"} {
		path = append(path, filepath.Join(root, "bin", "toolchains", filepath.FromSlash(dir)))
	}
	t.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
	t.Setenv("ZIG_GLOBAL_CACHE_DIR", filepath.Join(root, "bin", "kits", "cache-zig", "global"))
}

// unitTests are the commands in the pages of the templates, run without a network.
var unitTests = map[string][]string{
	"c": {"make", "test"}, "cpp": {"make", "test"}, "rust": {"cargo", "test", "--offline", "--quiet"}, "zig": {"zig", "build", "test"},
	"assemblyscript": {"node", "--test"}, "javascript": {"node", "--test"}, "go": {"go", "test"},
}

// TestTemplates makes a project in every language, builds it, with debug information too,
// and runs its unit tests and the test of its recipe.
func TestTemplates(t *testing.T) {
	toolchains(t)
	for _, l := range All {
		t.Run(l.Name, func(t *testing.T) {
			if l != &javaScript && l != &wat {
				guesttools.Use(t)
			}
			dir := filepath.Join(t.TempDir(), "frog_pond")
			own, err := Create(dir, "frog_pond", l)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(own, "README.md") || !slices.Contains(own, ".gitignore") || !slices.Contains(own, "frog_pond.hcl") {
				t.Errorf("the project has %v", own)
			}
			built := buildHere(t, dir, l, Options{})
			if built.Name != "frog_pond" || built.Info.Manifest == nil || built.Info.Manifest.Name != "frog_pond" {
				t.Errorf("built %s with the manifest %+v", built.Name, built.Info.Manifest)
			}
			if debug := buildHere(t, dir, l, Options{Debug: true}); l != &javaScript && len(debug.Wasm) <= len(built.Wasm) {
				t.Errorf("%d bytes with debug information, %d without", len(debug.Wasm), len(built.Wasm))
			}
			if err := os.WriteFile(filepath.Join(dir, built.Name+".wasm"), built.Wasm, 0o644); err != nil {
				t.Fatal(err)
			}
			runUnitTests(t, dir, l)
			runRecipeTests(t, filepath.Join(dir, "frog_pond.hcl"))
		})
	}
}

func buildHere(t *testing.T, dir string, l *Language, o Options) *Built {
	t.Helper()
	p, err := Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Language != l {
		t.Fatalf("it is taken for %s", p.Language.Name)
	}
	built, err := p.Build(t.Context(), o)
	if abi.CodeOf(err) == abi.Unavailable {
		guesttools.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, built.Output)
	}
	if built.Output != "" {
		t.Errorf("the compiler printed %s", built.Output)
	}
	return built
}

func runUnitTests(t *testing.T, dir string, l *Language) {
	t.Helper()
	command := unitTests[l.Name]
	if command == nil {
		return
	}
	if !strings.HasPrefix(strings.Join(command, " "), l.test) {
		t.Errorf("the page tells %q", l.test)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		if command[0] != "zig" { // the compiler was found as a package of Python
			guesttools.Missing(t, err.Error())
		}
		command = append([]string{"python3", "-m", "ziglang"}, command[1:]...)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
}

func runRecipeTests(t *testing.T, recipe string) {
	t.Helper()
	tests, diags := terrarium.LoadTests(t.Context(), recipe, terrarium.RecipeOptions{})
	if len(diags) > 0 || len(tests) == 0 {
		t.Fatalf("%d tests, %v", len(tests), diags)
	}
	for _, test := range tests {
		result, err := terrarium.RunTest(t.Context(), test, terrarium.Options{})
		if err != nil || !result.Passed {
			t.Errorf("%s: %v, %+v", test.Name, err, result)
		}
	}
}
