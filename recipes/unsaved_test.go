package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnsaved(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"team.hcl":    "channel \"a\" {}\n",
		"sub/sub.hcl": "channel \"b\" {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reader := "creature \"reader\" {\n  module = \"builtin:relay\"\n  listen = [channel.a]\n}\n"
	o := Options{Builtins: builtins{"relay"}, Unsaved: map[string][]byte{
		filepath.Join(dir, "new.hcl"):     []byte(reader + "policy \"send\" \"p\" {\n  file = \"p.js\"\n}\nrecipe \"sub\" {\n  source = \"./sub\"\n}\n"),
		filepath.Join(dir, "p.js"):        []byte("() => true"),
		filepath.Join(dir, "sub/new.hcl"): []byte(strings.ReplaceAll(reader, "channel.a", "channel.b")),
	}}
	r, diags := Load(t.Context(), dir, o)
	if r == nil {
		t.Fatal(diags)
	}
	if n := len(r.Deployment().Creatures); n != 2 {
		t.Errorf("there are %d creatures", n)
	}
	// A recipe with no saved file at all.
	alone := filepath.Join(dir, "alone.hcl")
	o.Unsaved = map[string][]byte{alone: []byte("channel \"a\" {}\n" + reader)}
	if r, diags := Load(t.Context(), alone, o); r == nil {
		t.Error(diags)
	}
	o.MaxFileBytes = 10
	if _, diags := Load(t.Context(), alone, o); !strings.Contains(diags.Err().Error(), "larger than 10 bytes") {
		t.Error(diags)
	}
}

func TestWithin(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.wasm"), []byte("no module"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("there are no links here:", err)
	}
	for path, read := range map[string]bool{outside + "/x.wasm": false, "link/x.wasm": false, "../missing.wasm": false, "link/missing.wasm": false, "missing.wasm": true, "no/such.wasm": true} {
		text := "channel \"a\" {}\ncreature \"x\" {\n  module = \"" + path + "\"\n  listen = [channel.a]\n}\n"
		file := filepath.Join(dir, "a.hcl")
		_, diags := Load(t.Context(), file, Options{Within: dir, Inspector: &inspector{}, Unsaved: map[string][]byte{file: []byte(text)}})
		if diags.HasErrors() != read {
			t.Errorf("%s: %v", path, diags)
		}
	}
	file := filepath.Join(dir, "a.hcl")
	text := "channel \"a\" {}\ncreature \"x\" {\n  module = \"builtin:relay\"\n  listen = [channel.a]\n}\ncatalog \"c\" {\n  folder = \"" + outside + "\"\n  spawnable = 1\n}\n"
	o := Options{Within: dir, Inspector: &inspector{}, Builtins: builtins{"relay"}, Unsaved: map[string][]byte{file: []byte(text)}}
	if _, diags := Load(t.Context(), file, o); diags.HasErrors() {
		t.Errorf("a catalog outside: %v", diags)
	}
}
