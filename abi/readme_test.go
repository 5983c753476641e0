package abi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRulesAreNumberedOnce(t *testing.T) {
	text := readme(t)
	defined := map[string]bool{}
	next := map[string]int{}
	rule := regexp.MustCompile(`(?m)^- \*\*ABI-([A-Z])(\d+)\*\*`)
	for _, m := range rule.FindAllStringSubmatch(text, -1) {
		name := "ABI-" + m[1] + m[2]
		if defined[name] {
			t.Errorf("%s is defined twice", name)
		}
		defined[name] = true
		next[m[1]]++
	}
	for letter, n := range next {
		for i := 1; i <= n; i++ {
			if name := "ABI-" + letter + strconv.Itoa(i); !defined[name] {
				t.Errorf("%s is missing", name)
			}
		}
	}
	for _, name := range regexp.MustCompile(`ABI-[A-Z]\d+`).FindAllString(text, -1) {
		if !defined[name] {
			t.Errorf("%s is referred to but not defined", name)
		}
	}
	if len(defined) < 40 {
		t.Errorf("only %d rules were found", len(defined))
	}
}

// The text of the contract contains all names that it fixes.
func TestNamesAreInTheText(t *testing.T) {
	text := readme(t)
	for _, name := range []string{abi.ImportModule, abi.ExportMarker, abi.ExportMemory, abi.ExportHandle, abi.ExportInit,
		abi.ExportStop, abi.ExportInitialize, abi.ManifestSection} {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is not mentioned", name)
		}
	}
}

func TestExampleAssembles(t *testing.T) {
	_, after, ok := strings.Cut(readme(t), "<!-- example: wat -->\n```wat\n")
	wat, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the marker of the example is missing")
	}
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed; make toolchains installs it")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "example.wat"), filepath.Join(dir, "example.wasm")
	if err := os.WriteFile(in, []byte(wat), 0o644); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(tool, in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Manifest(module, []byte(`{"name":"example"}`)); err != nil {
		t.Error(err)
	}
}

// The position of an entry in its table is its number.
func TestTablesAreInOrder(t *testing.T) {
	for i, c := range abi.Codes {
		if int(c.Code) != i+1 {
			t.Errorf("code %s is %d at position %d", c.Name, c.Code, i)
		}
		if back, ok := abi.ParseCode(c.Name); !ok || back != c.Code || c.Code.String() != c.Name {
			t.Errorf("%s does not find its way back", c.Name)
		}
		if abi.CodeOfStatus(c.Code.Status()) != c.Code {
			t.Errorf("the status of %s is another code's", c.Name)
		}
	}
	for i, s := range abi.Sources {
		if int(s.Source) != i {
			t.Errorf("source %s is %d at position %d", s.Name, s.Source, i)
		}
	}
	for i, k := range abi.Kinds {
		if int(k.Kind) != i+1 || k.Kind.String() != k.Name {
			t.Errorf("kind %s is %d at position %d", k.Name, k.Kind, i)
		}
	}
	for i, f := range abi.Features {
		if int(f.Feature) != i {
			t.Errorf("feature %s is %d at position %d", f.Name, f.Feature, i)
		}
	}
	var names []string
	for _, f := range abi.Functions {
		if len(f.Params) > 6 {
			t.Errorf("%s has %d parameters; six is the most", f.Name, len(f.Params))
		}
		if slices.Contains(names, f.Name) {
			t.Errorf("%s is in the table twice", f.Name)
		}
		names = append(names, f.Name)
	}
	for _, status := range []int32{-21, -1 << 31} {
		if abi.CodeOfStatus(status) != abi.Trapped {
			t.Errorf("status %d is %v, want trapped", status, abi.CodeOfStatus(status))
		}
	}
}
