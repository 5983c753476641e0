// Package project makes, recognizes and builds folders that contain the source of one
// creature. It has a template and the command of the compiler for every language that has
// a kit, and for WAT.
package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/near"
)

// kitFolder is the folder of a project that holds the kit.
const kitFolder = "terrarium-kit"

// A Language is one in which creatures are written.
type Language struct {
	Name  string // as in the flags of commands
	Title string // as in pages

	tools string   // what a build needs, for the page
	needs []*tool  // the same, to be found
	test  string   // the command of the unit tests; "" if the recipe has the only test
	kit   []copied // the kit, and the creature with its tests, below the folder sdk
	after string   // the last paragraph of the page
	// sources are the names of files that a build reads, or endings that begin with a dot.
	sources []string

	// compile builds the module of the project into a file in the folder out.
	compile func(ctx context.Context, b *build, out string) (file string, err error)
}

// copied is a file or a folder that becomes part of a project.
type copied struct{ from, to string }

// All holds the languages, in the order in which messages name them.
var All = []*Language{&c, &cpp, &rust, &zig, &assemblyScript, &javaScript, &golang, &wat}

// Names returns the names of all languages.
func Names() []string {
	var names []string
	for _, l := range All {
		names = append(names, l.Name)
	}
	return names
}

// otherNames are further names of languages.
var otherNames = map[string]string{"c++": "cpp", "cxx": "cpp", "rs": "rust", "as": "assemblyscript", "ts": "assemblyscript", "typescript": "assemblyscript",
	"js": "javascript", "golang": "go", "wast": "wat", "wasm": "wat"}

// ByName returns the language of a name. The error has the code
// [abi.InvalidArgument], and suggests one.
func ByName(name string) (*Language, error) {
	best, distance := otherNames[strings.ToLower(name)], len(name)/3+2
	for _, l := range All {
		if l.Name == name {
			return l, nil
		}
		if d := near.Distance(strings.ToLower(name), l.Name); d < distance && d < len(l.Name) && otherNames[strings.ToLower(name)] == "" {
			best, distance = l.Name, d
		}
	}
	e := &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("there is no language %q", name), Remedy: "use one of " + strings.Join(Names(), ", ")}
	switch {
	case name == "":
		e.Message = "the language is missing"
	case best != "":
		e.Message += fmt.Sprintf("; did you mean %s?", best)
	}
	return nil, e
}

const (
	getClang = "Debian: apt-get install clang lld; macOS: brew install llvm lld"
	getNode  = "install Node from https://nodejs.org"
)

var (
	c = Language{
		Name: "c", Title: "C", needs: []*tool{&clang, &wasmLinker}, tools: "clang and wasm-ld (" + getClang + ")", test: "make test", sources: strings.Fields(".c .h .inc"), compile: compileC,
		kit: []copied{{"c", kitFolder}, {"c/examples/shout.c", "NAME.c"}, {"c/examples/shout_test.c", "NAME_test.c"}},
	}
	cpp = Language{
		Name: "cpp", Title: "C++", needs: []*tool{&clangPlus, &wasmLinker}, tools: c.tools, test: "make test", sources: strings.Fields(".cpp .cc .cxx .c .h .hh .hpp .hxx .inc"), compile: compileC,
		kit: []copied{{"c", kitFolder}, {"cpp", kitFolder}, {"cpp/examples/shout.cpp", "NAME.cpp"}, {"cpp/examples/shout_test.cpp", "NAME_test.cpp"}},
	}
	rust = Language{
		Name: "rust", Title: "Rust", needs: []*tool{&cargo, &rustLib}, tools: "Rust with the target " + rustTarget + " (" + getRustTarget + ")", test: "cargo test", sources: strings.Fields(".rs .toml"), compile: compileRust,
		kit: []copied{{"rust/Cargo.toml", kitFolder + "/Cargo.toml"}, {"rust/src", kitFolder + "/src"}, {"rust/examples/shout/src/lib.rs", "src/lib.rs"}},
	}
	zig = Language{
		Name: "zig", Title: "Zig", needs: []*tool{&zigTool}, tools: "Zig 0.17 (" + getZig + ")", test: "zig build test", sources: strings.Fields(".zig .zon"), compile: compileZig,
		kit:   []copied{{"zig/build.zig", kitFolder + "/build.zig"}, {"zig/build.zig.zon", kitFolder + "/build.zig.zon"}, {"zig/src", kitFolder + "/src"}, {"zig/examples/shout.zig", "NAME.zig"}},
		after: "If you have installed the Python package `ziglang`, use `python3 -m ziglang` instead of `zig`.",
	}
	assemblyScript = Language{
		Name: "assemblyscript", Title: "AssemblyScript", needs: []*tool{&node}, tools: "Node and the compiler (`npm install` downloads it once)", test: "node --test", sources: strings.Fields(".ts package.json asconfig.json tsconfig.json"), compile: compileAssemblyScript,
		kit: []copied{{"assemblyscript", kitFolder}, {"assemblyscript/assembly", kitFolder + "/assembly"}, {"assemblyscript/fake", kitFolder + "/fake"},
			{"assemblyscript/examples/shout.ts", "NAME.ts"}},
		after: "The unit tests run the built module, and need Node 18 or later.",
	}
	javaScript = Language{
		Name: "javascript", Title: "JavaScript", tools: "no other tool", test: "node --test", sources: strings.Fields(".js .mjs package.json"), compile: compileJavaScript,
		kit:   []copied{{"js", kitFolder}, {"js/examples/shout.js", "NAME.js"}},
		after: "The unit tests need Node 20 or later.",
	}
	golang = Language{
		Name: "go", Title: "Go", needs: []*tool{&goCommand}, tools: "Go 1.24 or later (" + getGo + ")", test: "go test", sources: strings.Fields(".go go.mod go.work"), compile: compileGo,
		kit: []copied{{"go/terrarium", kitFolder + "/sdk/go/terrarium"}, {"go/terrarium/terrariumtest", kitFolder + "/sdk/go/terrarium/terrariumtest"},
			{"go/examples/shout/main.go", "main.go"}, {"go/examples/shout/main_test.go", "main_test.go"}},
		after: "`go.mod` uses the kit in `terrarium-kit`. To use a published version, remove the line `replace`, name the version in the line `require`, and run `go mod tidy`.",
	}
	wat = Language{Name: "wat", Title: "WAT", needs: []*tool{&wat2wasm}, tools: "wat2wasm (" + getWabt + ")", sources: strings.Fields(".wat"), compile: compileWAT, after: "WAT has no kit, so its test is the one in the recipe."}
)

// withManifest are the languages whose templates have no manifest in the source. It is a
// file, which the build packs into the module.
func (l *Language) withManifest() bool {
	return slices.Contains([]*Language{&zig, &assemblyScript, &javaScript, &golang, &wat}, l)
}
