package docstest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const rationale = "RATIONALE.md"

// rationales are the pages of decisions: that of the module, and those of its packages.
func rationales(t *testing.T) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return fs.SkipDir
		}
		if err == nil && d.Name() == rationale {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 10 {
		t.Fatalf("only %d pages of decisions were found", len(names))
	}
	return names
}

var (
	decision = regexp.MustCompile(`(?m)^## +(.*)$`)
	listed   = regexp.MustCompile(`(?m)^- \[(.*)\]\((.*)\)$`)
)

// TestRationaleIndex holds that the index lists each decision of each package under
// its heading, in their order, and nothing else.
func TestRationaleIndex(t *testing.T) {
	text := readRepository(t, rationale)
	_, index, found := strings.Cut(text, "\n## By package\n")
	if !found {
		t.Fatal("RATIONALE.md has no index by package")
	}
	if before := strings.Count(strings.TrimSuffix(text, index), "\n## "); before != 2 {
		t.Errorf("RATIONALE.md has %d sections before its index, want one about the whole module: decisions belong to their packages", before-1)
	}
	have := map[string][]string{} // by page
	for _, m := range listed.FindAllStringSubmatch(index, -1) {
		page, anchor, _ := strings.Cut(m[2], "#")
		have[page] = append(have[page], m[1])
		if !hasAnchor("## "+m[1], anchor) {
			t.Errorf("RATIONALE.md: the link of %q leads to the heading %q", m[1], anchor)
		}
	}
	for _, name := range rationales(t) {
		if name == rationale {
			continue
		}
		if !strings.Contains(index, "\n### "+path.Dir(name)+"\n") {
			t.Errorf("RATIONALE.md has no heading %q in its index", path.Dir(name))
		}
		page := readRepository(t, name)
		if !strings.HasPrefix(page, "# Rationale: "+path.Dir(name)+"\n") {
			t.Errorf("%s does not begin with its package", name)
		}
		var headings []string
		for _, m := range decision.FindAllStringSubmatch(page, -1) {
			if slices.Contains(headings, m[1]) {
				t.Errorf("%s has the heading %q twice", name, m[1])
			}
			headings = append(headings, m[1])
			if !slices.Contains(have[name], m[1]) {
				t.Errorf("RATIONALE.md does not list %q of %s", m[1], name)
			}
		}
		if len(headings) == 0 {
			t.Errorf("%s has no decision", name)
		}
		for _, h := range have[name] {
			if !slices.Contains(headings, h) {
				t.Errorf("RATIONALE.md lists %q, which %s does not have", h, name)
			}
		}
		if len(have[name]) == len(headings) && !slices.Equal(have[name], headings) {
			t.Errorf("RATIONALE.md lists the decisions of %s in another order", name)
		}
		delete(have, name)
	}
	for page := range have {
		t.Errorf("RATIONALE.md lists decisions of %s, which does not exist", page)
	}
}
