package docstest

import (
	"regexp"
	"strings"
	"testing"
)

// changesFolder is a command that changes the folder of the reader's shell. In parentheses, it
// changes that of a subshell.
var changesFolder = regexp.MustCompile(`^\$ (.*[^(]*[;&|] *)?cd `)

// TestFolderStays checks that no command of a page leaves the reader in another folder: each one
// is run in the folder of the page.
func TestFolderStays(t *testing.T) {
	lines := 0
	for _, p := range pages(t) {
		for i := range p.blocks {
			b := &p.blocks[i]
			if !b.isConsole() {
				continue
			}
			for n, line := range strings.Split(b.text, "\n") {
				if strings.HasPrefix(line, "$ ") {
					lines++
				}
				if changesFolder.MatchString(line) {
					t.Errorf("%s:%d: after %q, the reader is in another folder than the test; use a subshell: (cd … && …)", p.name, b.line+n, line)
				}
			}
		}
	}
	if lines < 100 {
		t.Errorf("%d commands were found", lines)
	}
	for line, want := range map[string]bool{"$ cd a": true, "$ make; cd a && b": true, "$ (cd a && b)": false, "cd a": false, "$ echo cd a": false} {
		if changesFolder.MatchString(line) != want {
			t.Errorf("%q: changes the folder: %v", line, !want)
		}
	}
}
