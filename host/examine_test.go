package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// TestExamineAgreesWithCompile changes every byte of a module: a module has problems if
// and only if it is refused.
func TestExamineAgreesWithCompile(t *testing.T) {
	h, err := New(t.Context(), Options{Interpreter: true}) // the checks before compiling are the same
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.WithoutCancel(t.Context()))
	echo, err := os.ReadFile("../plugins/echo/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	cases := [][]byte{echo, nil, echo[:100]}
	files, err := filepath.Glob("testdata/*.wasm")
	if err != nil || len(files) == 0 {
		t.Fatal("no modules", err)
	}
	for _, file := range files {
		if strings.Contains(file, "outside") {
			continue // it compiles, and its instances are refused: see below
		}
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, wasm)
	}
	for i := range echo {
		changed := bytes.Clone(echo)
		changed[i] ^= 1 << (i % 8)
		cases = append(cases, changed)
	}
	fit := 0
	for i, wasm := range cases {
		x, err := h.Examine(t.Context(), wasm)
		if err != nil {
			t.Fatal(err)
		}
		m, err := h.Compile(t.Context(), wasm)
		if err == nil {
			fit++
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if (err == nil) != (len(x.Problems) == 0) {
			t.Errorf("module %d: Compile says %v, Examine says %v", i, err, x.Problems)
		}
		for _, p := range x.Problems {
			if code := abi.CodeOf(p); code == abi.OK || code == abi.Internal {
				t.Errorf("module %d: the problem %v has the code %v", i, p, code)
			}
		}
	}
	if fit < 10 || fit > len(cases)-10 {
		t.Errorf("%d of %d modules fit: the cases show nothing", fit, len(cases))
	}
}

func TestExamineTellsLimits(t *testing.T) {
	h, err := New(t.Context(), Options{Interpreter: true, MaxModuleBytes: 600})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.WithoutCancel(t.Context()))
	echo, err := os.ReadFile("../plugins/echo/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	x, err := h.Examine(t.Context(), echo)
	if err != nil {
		t.Fatal(err)
	}
	if want := (LimitUse{Limit: "ModuleBytes", Used: int64(len(echo)), Most: 600}); len(x.Near) != 1 || x.Near[0] != want {
		t.Errorf("near %v, want %v", x.Near, want)
	}
	outside, err := os.ReadFile("testdata/data_outside.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if x, err = h.Examine(t.Context(), outside); err != nil || len(x.Problems) != 1 || !strings.Contains(x.Problems[0].Error(), "cannot be instantiated") {
		t.Errorf("problems %v, %v, want that it cannot be instantiated", x.Problems, err)
	}
	x, err = h.Examine(t.Context(), make([]byte, 601))
	if err != nil || len(x.Problems) != 1 || abi.CodeOf(x.Problems[0]) != abi.TooLarge {
		t.Errorf("problems %v, %v, want one that is too large", x.Problems, err)
	}
}

// Only functions have a type: the imports of a module may also be memories and globals.
func TestExamineTellsImports(t *testing.T) {
	h, err := New(t.Context(), Options{Interpreter: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.WithoutCancel(t.Context()))
	for module, want := range map[string]SymbolKind{"imports_memory": SymbolMemory, "imports_global": SymbolGlobal, "import_foreign": SymbolFunction} {
		wasm, err := os.ReadFile("../conformance/hosts/modules/" + module + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		x, err := h.Examine(t.Context(), wasm)
		if err != nil || len(x.Imports) != 1 {
			t.Fatalf("%s: %+v, %v", module, x, err)
		}
		if s := x.Imports[0]; s.Kind != want || (s.Type != "") != (want == SymbolFunction) {
			t.Errorf("%s: %+v", module, s)
		}
	}
}

// The compiler is available on the processors that wazero supports.
func TestCompiles(t *testing.T) {
	if want := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"; Compiles(t.Context()) != want {
		t.Errorf("on %s, modules compile: %v", runtime.GOARCH, !want)
	}
}

// A module has names if its name section has one of a function.
func TestExamineTellsNames(t *testing.T) {
	h, err := New(t.Context(), Options{Interpreter: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.WithoutCancel(t.Context()))
	const module = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x04\x01\x02\x00\x0b" // one function, exported
	for section, want := range map[string]bool{
		"": false, "\x00\x09\x04name\x00\x02\x01m": false, "\x00\x08\x04name\x01\x01\x00": false, "\x00\x0b\x04name\x01\x04\x01\x00\x01f": true,
	} {
		x, err := h.Examine(t.Context(), []byte(module+section))
		if err != nil {
			t.Fatal(err)
		}
		if x.Debug.Names != want || len(x.Exports) != 1 {
			t.Errorf("%q: names %v, want %v; %d exports; problems %v", section, x.Debug.Names, want, len(x.Exports), x.Problems)
		}
	}
}
