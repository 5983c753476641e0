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

// TestIndex makes sure that every page of docs is listed in their index and in
// llms.txt.
func TestIndex(t *testing.T) {
	index, listed := readRepository(t, "docs/README.md"), readRepository(t, "llms.txt")
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.name, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not mention %s", name)
		}
		if inDocs && !strings.Contains(listed, "("+p.name+"): ") {
			t.Errorf("llms.txt does not list %s with a line about it", p.name)
		}
	}
}

var entry = regexp.MustCompile(`^- \[[^\]]+\]\([^)]+\): [^ ].*$`)

// TestListForModels holds that llms.txt has the form of llmstxt.org: a title, a
// summary as a quotation, and sections with nothing but links and a line about each.
func TestListForModels(t *testing.T) {
	head, sections, found := strings.Cut(readRepository(t, "llms.txt"), "\n## ")
	if !found || !strings.HasPrefix(head, "# terrarium\n\n> ") {
		t.Fatal("llms.txt does not begin with a title, a summary and sections")
	}
	links := 0
	for _, line := range strings.Split("## "+sections, "\n") {
		switch {
		case entry.MatchString(line):
			links++
		case line != "" && !strings.HasPrefix(line, "## "):
			t.Errorf("llms.txt: %q is neither a heading nor a link with a line about it", line)
		}
	}
	if links < 40 {
		t.Errorf("llms.txt has only %d links", links)
	}
}
