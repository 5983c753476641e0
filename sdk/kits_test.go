package sdk_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/conformance"
	"github.com/seed47132306/terrarium/internal/guesttools"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

var update = flag.Bool("update", false, "write the transcripts again, from the creatures in Go")

const root = ".."

// TestKits builds the reference creatures of every kit and compares their transcripts,
// warm and with a fresh instance for every turn, with those of the cases. make test has one
// case of every creature and some of the others, make test-kits all.
func TestKits(t *testing.T) {
	files, err := filepath.Glob("reference/cases/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			dir := modules(t, &k)
			covered := map[string]bool{}
			for i, file := range files {
				c := readCase(t, file)
				if covered[c.Module] && !*update && !seeded.Part(i, 4) {
					continue
				}
				covered[c.Module] = true
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { check(t, c, file, k.Language, dir) })
			}
			for _, name := range kits.Creatures {
				if !covered[name] {
					t.Errorf("no case is about %s", name)
				}
			}
		})
	}
}

// modules builds a kit's creatures, or skips the test.
func modules(t *testing.T, k *kits.Kit) string {
	if k.Language != "Go" && k.Language != "JavaScript" { // which terrarium itself builds
		guesttools.Use(t)
	}
	if missing := k.Missing(root); missing != "" {
		guesttools.Missing(t, missing+" is missing")
	}
	dir, err := k.Modules(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// cache is a folder for compiled modules, which every case needs twice.
func cache(t *testing.T) string {
	dir := filepath.Join(root, "bin", "kits", "compiled")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func check(t *testing.T, c conformance.Case, file, language, dir string) {
	name := c.Module
	c.Module, c.CacheDir = filepath.Join(dir, name+".wasm"), cache(t)
	if *update && language == "Go" {
		got, err := conformance.RunCreature(t.Context(), &c, false)
		if err != nil {
			t.Fatal(err)
		}
		c.Transcript = got
		kept := c
		kept.Module = name
		writeCase(t, file, &kept)
	}
	problems, err := conformance.CheckCreature(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestSizes proves that no kit adds more to a module than its page says.
func TestSizes(t *testing.T) {
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			info, err := os.Stat(filepath.Join(modules(t, &k), "shout.wasm"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > k.ShoutBytes {
				t.Errorf("shout has %d bytes; at most %d are allowed", info.Size(), k.ShoutBytes)
			}
		})
	}
}

func readCase(t *testing.T, file string) (c conformance.Case) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

func writeCase(t *testing.T, file string, c *conformance.Case) {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
