package editor

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/recipes"
)

// checkFormat compares the layout of a text in parts with that of the whole text.
func checkFormat(t *testing.T, w *Workspace, path string, text []byte) {
	t.Helper()
	w.Set(path, text)
	whole, diags := recipes.Format(path, text)
	parts := w.Format(path)()
	if diags.HasErrors() {
		whole = nil
	}
	if (whole == nil && len(text) > 0) != (parts == nil) || !bytes.Equal(whole, parts) {
		t.Fatalf("%q\nin parts: %q\nwhole:    %q", text, parts, whole)
	}
}

// TestFormatInParts edits recipes at random. Their parts are laid out as the whole is.
func TestFormatInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	blanks := []string{" ", "\n", "\n\n", "  ", "\n}\n", " # note\n", "a = 1\n", "long_name = 1 # x\n", "/*", "*/", "\"", "{", "}", "<<-JS\n", "  JS\n", "channel \"x\" {}\n", "channel \"y\" {\n}\n"}
	for _, dir := range []string{"../../examples", "../testdata"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".hcl") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || len(text) > 20_000 {
				return err
			}
			w := NewWorkspace(nil, Auto)
			checkFormat(t, w, path, text)
			for range 12 {
				at := random.IntN(len(text) + 1)
				if random.IntN(2) == 0 { // at the start of a line
					at = bytes.LastIndexByte(text[:at], '\n') + 1
				}
				end := min(len(text), at+random.IntN(3))
				text = append(append(bytes.Clone(text[:at]), blanks[random.IntN(len(blanks))]...), text[end:]...)
				checkFormat(t, w, path, text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzFormatInParts lays out any text in parts as a whole.
func FuzzFormatInParts(f *testing.F) {
	f.Add("channel \"a\" {}\n\ncreature \"b\" {\n module = \"builtin:echo\" # x\n}\nlocals {\n a = 1 # y\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		checkFormat(t, NewWorkspace(nil, Auto), "/team.hcl", []byte(text))
	})
}
