package pack_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
)

const empty = "\x00asm\x01\x00\x00\x00"

// section is a custom section.
func section(name, content string) string {
	body := string(binary.AppendUvarint(nil, uint64(len(name)))) + name + content
	return "\x00" + string(binary.AppendUvarint(nil, uint64(len(body)))) + body
}

func TestManifestIsFoundAgain(t *testing.T) {
	packed, err := pack.Manifest([]byte(empty), []byte("{\n  \"name\": \"echo\",\n  \"version\": \"1\"\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := empty + section(abi.ManifestSection, `{"name":"echo","version":"1"}`); string(packed) != want {
		t.Errorf("the module is %q, want %q", packed, want)
	}
}

func TestManifestReplacesAnOlderOne(t *testing.T) {
	once, err := pack.Manifest([]byte(empty), []byte(`{"name":"old"}`))
	if err != nil {
		t.Fatal(err)
	}
	twice, err := pack.Manifest(once, []byte(`{"name":"new"}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(twice, []byte(abi.ManifestSection)); n != 1 {
		t.Errorf("%d sections", n)
	}
	if bytes.Contains(twice, []byte("old")) {
		t.Error("the old manifest is still there")
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, module, manifest, want string
		code                         abi.Code
	}{
		{"not a module", "(module)", `{"name":"x"}`, "not a core WebAssembly module", abi.InvalidArgument},
		{"a component", "\x00asm\x0d\x00\x01\x00", `{"name":"x"}`, "not a core WebAssembly module", abi.InvalidArgument},
		{"a section too long", empty + "\x01\x05\x00", `{"name":"x"}`, "at byte 0x8 is truncated", abi.InvalidArgument},
		{"a section without a length", empty + "\x01", `{"name":"x"}`, "truncated", abi.InvalidArgument},
		{"a custom section without a name", empty + "\x00\x01\x09", `{"name":"x"}`, "truncated", abi.InvalidArgument},
		{"not JSON", empty, `name: x`, "not JSON", abi.InvalidArgument},
		{"not an object", empty, `["x"]`, "not a JSON object", abi.InvalidArgument},
		{"no name", empty, `{"version":"1"}`, "has no name", abi.InvalidArgument},
		{"too large", empty, `{"name":"` + strings.Repeat("x", abi.MaxManifestBytes) + `"}`, "at most", abi.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := pack.Manifest([]byte(c.module), []byte(c.manifest))
			if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want the code %v and %q", err, c.code, c.want)
			}
		})
	}
}

// A packed manifest can be read back, and everything else is unchanged.
func TestReplaceKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		module := []byte(empty)
		names := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,8}`), 0, 4).Draw(t, "names")
		for _, name := range names {
			var err error
			if module, err = pack.Replace(module, name, []byte("content of "+name)); err != nil {
				t.Fatal(err)
			}
		}
		content := rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		packed, err := pack.Replace(module, "IT", content)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(module) + section("IT", string(content)); string(packed) != want {
			t.Fatalf("the module is %q, want %q", packed, want)
		}
	})
}

func FuzzReplace(f *testing.F) {
	f.Add([]byte(empty))
	f.Add([]byte(empty + "\x00\x03\x02ab"))
	f.Add([]byte(empty + "\x01\x80\x80\x80\x80\x80\x01"))
	f.Fuzz(func(t *testing.T, module []byte) {
		packed, err := pack.Replace(module, "n", []byte("c"))
		if err != nil {
			return
		}
		if !strings.HasSuffix(string(packed), section("n", "c")) {
			t.Fatalf("the module is %q", packed)
		}
		if again, err := pack.Replace(packed, "n", []byte("c")); err != nil || !bytes.Equal(again, packed) {
			t.Fatalf("replaced again, the module is %q, %v; it was %q", again, err, packed)
		}
	})
}

// TestManifestKeepsCapabilities proves that a manifest that does not mention capabilities
// leaves those of the module, and that one that does replaces them.
func TestManifestKeepsCapabilities(t *testing.T) {
	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, manifest := range []struct{ text, want string }{
		{`{"name": "a"}`, `{"name":"a"}`},
		{`{"name": "a", "capabilities": []}`, `{"name":"a","capabilities":[]}`},
		{`{"name": "b"}`, `{"name":"b","capabilities":[]}`},
		{`{"name": "c", "capabilities": ["http"]}`, `{"name":"c","capabilities":["http"]}`},
		{`{"name": "d"}`, `{"name":"d","capabilities":["http"]}`},
	} {
		var err error
		if module, err = pack.Manifest(module, []byte(manifest.text)); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(module, []byte(manifest.want)) || bytes.Count(module, []byte(abi.ManifestSection)) != 1 {
			t.Errorf("%s made %q, want %s at its end", manifest.text, module, manifest.want)
		}
	}
}
