package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

// TestLinks follows every link that stays in the repository.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		prose := code.ReplaceAllString(p.text, "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			path := filepath.Join(root, filepath.Dir(p.name), file)
			if file == "" {
				path = filepath.Join(root, p.name)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Errorf("%s: the link %s leads nowhere", p.name, target)
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !hasAnchor(string(text), anchor) {
				t.Errorf("%s: the page of the link %s has no such heading", p.name, target)
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)

// hasAnchor reports whether a page has a heading of that anchor.
func hasAnchor(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		a := strings.ToLower(notInAnchor.ReplaceAllString(m[1], ""))
		if strings.ReplaceAll(strings.TrimSpace(a), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestIndex makes sure that every page of docs can be reached from its index.
func TestIndex(t *testing.T) {
	index := readRepository(t, "docs/README.md")
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.name, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not mention %s", name)
		}
	}
}
