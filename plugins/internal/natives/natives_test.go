package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is left of a module that is no longer translated is reported, and so is a file that
// a translation no longer has.
func TestOthers(t *testing.T) {
	root, files := t.TempDir(), map[string][]byte{}
	for name, ours := range map[string]bool{
		folder + "/doc.go": false, folder + "/internal/echo/code.go": true, folder + "/internal/gone/code.go": false,
		below + "/internal/behave/code.go": true, below + "/internal/behave/code2.go": false,
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if ours {
			files[name] = nil
		}
	}
	err := others(root, files)
	if err == nil {
		t.Fatal("nothing is reported")
	}
	text := filepath.ToSlash(err.Error())
	for _, want := range []string{"/gone/code.go belongs to no module", "/behave/code2.go belongs to no module"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if got := strings.Count(text, "remove it"); got != 2 {
		t.Errorf("%d files are reported:\n%s", got, text)
	}
}
