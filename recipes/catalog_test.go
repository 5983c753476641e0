package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// modules makes a folder with a number of modules.
func modules(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("m%03d.wasm", i)), []byte("ok"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func catalogOf(dir string) string {
	return fmt.Sprintf("creature \"a\" { module = \"builtin:relay\" }\nspecies \"s\" {\n  module = \"builtin:relay\"\n  spawnable = 1\n}\ncatalog \"c\" {\n  folder = %q\n  spawnable = 2\n}\n", dir)
}

func TestACatalogMayBeAnywhereIfItSaysSoInFull(t *testing.T) {
	dir := modules(t, 2)
	d := mustLoad(t, write(t, catalogOf(dir)), Options{Builtins: builtins{"relay"}}).Deployment()
	var got []string
	for _, s := range d.Species {
		got = append(got, fmt.Sprintf("%s %d %s", s.Name, s.Spawnable, s.Spec.Module))
	}
	want := []string{"s 1 builtin:relay", "c/m000 2 " + filepath.Join(dir, "m000.wasm"), "c/m001 2 " + filepath.Join(dir, "m001.wasm")}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestARecipeHasOnlySoManySpecies(t *testing.T) {
	fits := write(t, catalogOf(modules(t, deploy.MaxSpecies-1)))
	if d := mustLoad(t, fits, Options{Builtins: builtins{"relay"}}).Deployment(); len(d.Species) != deploy.MaxSpecies {
		t.Errorf("%d species, want %d", len(d.Species), deploy.MaxSpecies)
	}
	r, diags := Load(t.Context(), write(t, catalogOf(modules(t, deploy.MaxSpecies))), Options{Builtins: builtins{"relay"}})
	if r != nil || len(diags) != 1 || diags[0].Summary != "Too many species" || !strings.Contains(diags[0].Detail, "256 modules. A recipe can have at most 256 spawnable species") {
		t.Errorf("%v", diags)
	}
}

func TestACopyOfARecipeFindsItsCatalogWhereItWas(t *testing.T) {
	path := write(t, "creature \"a\" { module = \"builtin:relay\" }\ncatalog \"c\" {\n  folder = \"tools\"\n  spawnable = 2\n}\n")
	tools := filepath.Join(filepath.Dir(path), "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tools, "m.wasm"), []byte("ok"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{Builtins: builtins{"relay"}}
	source := mustLoad(t, path, o).Deployment().Source
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r, diags := LoadSource(t.Context(), source, o)
	if r == nil {
		t.Fatal(diags)
	}
	if s := r.Deployment().Species; len(s) != 1 || s[0].Name != "c/m" || string(s[0].Spec.Wasm) != "ok" {
		t.Errorf("species: %+v", s)
	}
	if err := os.RemoveAll(tools); err != nil {
		t.Fatal(err)
	}
	if r, diags := LoadSource(t.Context(), source, o); r != nil || len(diags) != 1 || diags[0].Summary != "Folder not found" {
		t.Errorf("without the folder: %v", diags)
	}
}
