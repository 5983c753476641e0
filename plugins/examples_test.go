package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// example returns the code in a page's fence of that language.
func example(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(text), "<!-- example: "+language+" -->\n```"+language+"\n")
	code, _, closed := strings.Cut(code, "```")
	if !ok || !closed {
		t.Fatalf("%s has no example in %s", page, language)
	}
	return code
}

// build runs a command for each list of arguments, in a folder with source in
// the file name, and returns the out.wasm that they write.
func build(t *testing.T, name, source string, commands ...[]string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Skipf("%s is not installed; make toolchains installs it", args[0])
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
	module, err := os.ReadFile(filepath.Join(dir, "out.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// The example in the contract is a creature that works.
func TestContractExample(t *testing.T) {
	wat := example(t, "abi/README.md", "wat")
	m := compile(t, build(t, "example.wat", wat, []string{"wat2wasm", "example.wat", "-o", "out.wasm"}))
	got := run(t, m, &world{channels: []string{"a"}}, messages(awkward...)...)
	equal(t, got, all("a", awkward)...)
}

// The example for C works too, built as its page says, with and without bulk
// memory.
func TestCExample(t *testing.T) {
	include, err := filepath.Abs(filepath.Join(root, "sdk", "c"))
	if err != nil {
		t.Fatal(err)
	}
	code := example(t, "sdk/c/README.md", "c")
	for _, bulk := range []string{"-mbulk-memory", "-mno-bulk-memory"} {
		m := compile(t, build(t, "urgent.c", code,
			[]string{"clang-14", "--target=wasm32", "-Os", "-Wall", "-Wextra", "-Werror", "-ffreestanding", bulk, "-I" + include, "-c", "urgent.c", "-o", "urgent.o"},
			[]string{"wasm-ld-14", "--no-entry", "--gc-sections", "--strip-all", "--stack-first", "-z", "stack-size=16384", "urgent.o", "-o", "out.wasm"}))
		got := run(t, m, &world{channels: []string{"a"}},
			delivery{payload: `{"urgent":true}`, headers: headers},
			delivery{payload: `{"urgent":"true"}`},
			delivery{payload: `{"urgent":false}`},
			delivery{payload: `urgent`},
			delivery{payload: `{"\u0075rgent" : true, "more": [{}]}`},
		)
		equal(t, got, sent("a", `{"urgent":true}`, headers), sent("a", `{"\u0075rgent" : true, "more": [{}]}`, ""))
	}
}
