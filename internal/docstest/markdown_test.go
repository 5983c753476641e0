package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository as seen from this folder.
const root = "../.."

// block is a fenced block of a page.
type block struct {
	language string
	line     int // of its first line of text
	notes    []string
	text     string
}

// note returns what a comment before the block says: for a comment "name: x"
// the x, for a comment "name" an empty text.
func (b *block) note(name string) (value string, ok bool) {
	for _, n := range b.notes {
		if n == name {
			return "", true
		}
		for _, sep := range []string{":", " "} {
			if v, found := strings.CutPrefix(n, name+sep); found {
				return strings.TrimSpace(v), true
			}
		}
	}
	return "", false
}

func (b *block) has(name string) bool {
	_, ok := b.note(name)
	return ok
}

// page is a Markdown file.
type page struct {
	name   string // relative to the repository
	text   string
	blocks []block
}

var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

func parsePage(name, text string) page {
	p := page{name: name, text: text}
	var notes []string
	var open *block
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && trimmed == fence:
			p.blocks = append(p.blocks, *open)
			open, notes = nil, nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(trimmed, "```"):
			language := strings.TrimLeft(trimmed, "`")
			fence = strings.Repeat("`", len(trimmed)-len(language))
			open = &block{language: language, line: i + 2, notes: notes}
		case trimmed == "":
		default:
			if m := comment.FindStringSubmatch(trimmed); m != nil {
				notes = append(notes, m[1])
			} else {
				notes = nil
			}
		}
	}
	return p
}

// pages are all pages that this package looks after.
func pages(t *testing.T) []page {
	t.Helper()
	names := append([]string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "llms.txt", "sdk/README.md", "sdk/c/README.md", "sdk/cpp/README.md", "sdk/js/README.md"}, rationales(t)...)
	for _, dir := range []string{"docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".md") {
				rel, rerr := filepath.Rel(root, path)
				names = append(names, filepath.ToSlash(rel))
				return rerr
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out []page
	for _, name := range names {
		out = append(out, parsePage(name, readRepository(t, name)))
	}
	return out
}

func readRepository(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParsePage(t *testing.T) {
	p := parsePage("x.md", "text\n\n<!-- exit 3 -->\n<!-- needs: wat2wasm -->\n\n```console\n$ a\nb\n```\n<!-- lost -->\ntext\n```go\nc\n```\n")
	if len(p.blocks) != 2 {
		t.Fatalf("it has %d blocks", len(p.blocks))
	}
	b := p.blocks[0]
	code, ok := b.note("exit")
	tool, _ := b.note("needs")
	if !ok || code != "3" || tool != "wat2wasm" || b.text != "$ a\nb\n" || b.language != "console" || b.line != 7 {
		t.Errorf("the first block is %+v", b)
	}
	if p.blocks[1].has("lost") {
		t.Error("a comment belongs to the block right after it only")
	}
}
