package project

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestWatched edits every file that a new project has. A change starts a build, except for
// files that only people, tests, editors or other tools read.
func TestWatched(t *testing.T) {
	ignored := regexp.MustCompile(`\.(md|hcl|gitignore|js|json|d\.ts)$|Makefile`)
	for _, l := range All {
		dir := filepath.Join(t.TempDir(), "frog")
		if _, err := Create(dir, "frog", l); err != nil {
			t.Fatal(err)
		}
		p, err := Detect(dir)
		if err != nil {
			t.Fatal(err)
		}
		files, err := render("frog", l)
		if err != nil {
			t.Fatal(err)
		}
		known, _, err := p.Watched().Sum()
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := write(filepath.Join(dir, filepath.FromSlash(file.name)), file.text+" "); err != nil {
				t.Fatal(err)
			}
			next, _, err := p.Watched().Sum()
			if err != nil {
				t.Fatal(err)
			}
			if next == known && !ignored.MatchString(file.name) {
				t.Errorf("%s: a change of %s starts no build", l.Name, file.name)
			}
			known = next
		}
		if err := write(filepath.Join(dir, "frog.wasm"), "built"); err != nil {
			t.Fatal(err)
		}
		if next, _, err := p.Watched().Sum(); err != nil || next != known {
			t.Errorf("%s: writing the module starts a build: %v", l.Name, err)
		}
	}
}
