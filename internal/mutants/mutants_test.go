package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const program = `package p

func f(a, b int, s string) (n int) {
	if a < b && s != "x" {
		n++
	}
	n += a * b
	s += "y" + s
	for n = 0; n < size; n++ {
	}
	_ = n
	return n << 1
}

const size = 2 + 3
`

func sites(t *testing.T, text string) []*site {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{}).Check("p", set, []*ast.File{file}, info)
	if err != nil {
		t.Fatal(err)
	}
	return sitesIn(set, file, pkg, info)
}

func TestSites(t *testing.T) {
	var got []string
	for i, s := range sites(t, program) {
		s.id = i + 1
		got = append(got, strings.TrimPrefix(s.String(), "p.go:"))
	}
	want := `4: && becomes ||
4: < becomes <=
4: != becomes ==
5: ++ becomes --
7: += becomes -=
7: * becomes +
9: < becomes <=
9: ++ becomes --
12: << becomes >>`
	if strings.Join(got, "\n") != want {
		t.Errorf("the sites are\n%s", strings.Join(got, "\n"))
	}
}

// A program that chooses its operators is one, nested sites included, and has the lines of
// the other.
func TestMutate(t *testing.T) {
	list := sites(t, program)
	for i, s := range list {
		s.id = i + 1
	}
	mutated := mutate(program, list)
	if got, want := strings.Count(mutated, "\n"), strings.Count(program, "\n"); got != want {
		t.Errorf("%d lines of %d", got, want)
	}
	sites(t, mutated+"\nfunc mutantIs(int) bool { return false }\n")
	if want := "n << 1"; !strings.Contains(mutated, "if mutantIs(9) { return n >> 1 }; return "+want) {
		t.Errorf("the program is\n%s", mutated)
	}
	if got := mutate(program, nil); got != program {
		t.Errorf("without sites the program is\n%s", got)
	}
}

// enter makes files, and a module of them, below the current folder of a test.
func enter(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestRun draws all mutants of a small module. One of its two tests notices one of them.
func TestRun(t *testing.T) {
	enter(t, map[string]string{
		"go.mod":          "module example.org/small\n\ngo 1.26\n",
		"small.go":        "package small\n\nimport \"time\"\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Late(d time.Duration) bool { return d*2 > 10 }\n",
		"small_test.go":   "package small\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fail()\n\t}\n}\n\nfunc TestLate(t *testing.T) { Late(3) }\n\nfunc TestBroken(t *testing.T) { t.Fail() }\n",
		"suite/s.go":      "package suite\n",
		"suite/s_test.go": "package suite\n\nimport (\n\t\"testing\"\n\n\t\"example.org/small\"\n)\n\nfunc TestAll(t *testing.T) {\n\tif small.Sum(2, 2) != 4 {\n\t\tt.Fail()\n\t}\n}\n",
	})
	var out strings.Builder
	if err := run(t.Context(), []string{"-suites", "./suite", "."}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 operators; seed 1\n", "3 mutants; 0 others do not compile\n", "3 tests; 1 others fail without a mutant\n",
		"caught   small.go:5: + becomes - (. TestSum fails; suite TestAll fails)\n",
		"ESCAPED  small.go:7: * becomes + (1 tests reach it)\n", "ESCAPED  small.go:7: > becomes >= (1 tests reach it)\n",
		"1 of 3 mutants were caught: 1 by the tests of the package, 1 by the suites.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
	if err := run(t.Context(), nil, &out); err == nil || !strings.Contains(err.Error(), "name packages") {
		t.Errorf("%v", err)
	}
}

// What does not compile is left out, and nothing else: neither the same line of a file of
// this name in another package, nor that of a file whose name ends the same.
func TestLeavesOutWhatDoesNotCompile(t *testing.T) {
	sum := "package small\n\nfunc Sum(a, b uint) uint { return a + b }\n"
	enter(t, map[string]string{
		"go.mod":            "module example.org/small\n\ngo 1.26\n",
		"small.go":          sum,
		"other/small.go":    "package other\n\nfunc Twice(a uint) int { int := int(a); return int + int }\n", // where int is no type
		"other/toosmall.go": strings.Replace(sum, "small", "other", 1),
		"small_test.go":     "package small\n",
		"other/o_test.go":   "package other\n",
	})
	var out strings.Builder
	if err := run(t.Context(), []string{"-suites", "", ".", "./other"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 operators;", "2 mutants; 1 others do not compile\n", "ESCAPED  small.go:3: +", "ESCAPED  other/toosmall.go:3: +"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
}

// A test that passes has passed, even if a process that it has left keeps its output open.
func TestLeftProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a Unix shell")
	}
	enter(t, map[string]string{"left.sh": "#!/bin/sh\nsleep 5 &\nexit $LEFT\n"})
	if err := os.Chmod("left.sh", 0o700); err != nil {
		t.Fatal(err)
	}
	for status, want := range map[string]string{"0": "", "1": "fails"} {
		got, err := (&runner{}).fails(t.Context(), &test{program: "./left.sh", name: "TestLeft"}, time.Minute, "LEFT="+status)
		if err != nil || got != want {
			t.Errorf("a test that ends with %s: %q, %v, want %q", status, got, err, want)
		}
	}
}
