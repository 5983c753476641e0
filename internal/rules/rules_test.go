package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed47132306/terrarium"

// pkg is a package in the output of go list.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Doc        string
	GoFiles    []string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list found only %d packages", len(list))
	}
	return list
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// layers lists which packages of this module each package may import, by path
// below the module. A package that is not listed may import none. Packages
// only for building and testing (internal, generators) are free. Some of them are
// used by others: internal/gcpace has the garbage of its own process collected less
// often, internal/near bounds the cost of a suggestion, internal/scratch removes files
// of killed processes, internal/selflimit limits its own process, and
// internal/unhurried gives policies of tests more time.
var layers = map[string][]string{
	"":                          {"abi", "capability", "connector", "connector/cronsource", "connector/files", "connector/mqtt", "connector/webhook", "engine", "engine/deploy", "engine/diff", "engine/inspect", "engine/journal", "engine/outlook", "engine/topology", "host", "host/translation", "internal/scratch", "plugins", "recipes", "recipes/policy", "replay", "sqlitestore", "internal/plainly", "internal/contain"},
	"operations":                {"", "abi", "connector", "engine", "engine/deploy", "engine/diff", "engine/inspect", "engine/journal", "engine/tools", "engine/topology", "internal/near", "replay", "sqlitestore", "internal/plainly"},
	"serve":                     {"", "abi", "connector/webhook", "docs/reference", "engine", "engine/inspect", "engine/journal", "internal/histogram", "internal/selflimit", "operations"},
	"docs/reference":            {},
	"abi":                       {},
	"abi/pack":                  {"abi"},
	"capability":                {"abi"},
	"capability/httpcap":        {"abi", "capability", "internal/plainly"},
	"capability/llmcap":         {"abi", "capability", "capability/httpcap", "internal/plainly"},
	"connector":                 {"abi", "capability", "internal/contain"},
	"connector/connectortest":   {"connector"},
	"connector/cronsource":      {"abi", "capability", "connector", "internal/plainly"},
	"connector/files":           {"abi", "capability", "connector", "engine/deploy", "internal/plainly"},
	"connector/mqtt":            {"abi", "capability", "connector", "engine/deploy", "internal/plainly"},
	"connector/mqtt/mqtttest":   {},
	"connector/webhook":         {"abi", "capability", "connector", "engine/deploy", "internal/plainly"},
	"telemetry":                 {"", "abi", "engine", "engine/journal", "internal/histogram"},
	"conformance":               {"", "abi", "engine", "engine/deploy", "engine/journal", "engine/topology", "operations"},
	"conformance/creatures":     {"abi", "conformance/report", "conformance/stage", "host", "operations", "internal/plainly"},
	"conformance/hosts":         {"abi", "conformance/report", "conformance/stage", "engine/journal", "host", "replay", "conformance/hosts/adapter"},
	"conformance/hosts/adapter": {},
	"conformance/hosts/wazero":  {"abi", "conformance/hosts/adapter"},
	"conformance/report":        {"conformance/requirements", "internal/plainly"},
	"conformance/requirements":  {},
	"conformance/stage":         {"abi", "engine", "engine/journal", "engine/outlook", "engine/rehearsal", "engine/tools", "operations", "replay"},
	"conformance/stores":        {"conformance/report", "engine/journal", "engine/storetest"},
	"conformance/hostile":       {"", "abi", "engine", "engine/deploy", "engine/journal", "engine/topology", "operations", "plugins"},
	"engine":                    {"abi", "capability", "engine/archive", "engine/deploy", "engine/diff", "engine/draft", "engine/inspect", "engine/journal", "engine/outlook", "engine/reconcile", "engine/rehearsal", "engine/tools", "engine/topology"},
	"engine/deploy":             {"abi", "engine/internal/errtext", "engine/journal", "engine/topology"},
	"engine/draft":              {"abi", "engine/deploy", "engine/internal/errtext", "engine/internal/sorted", "engine/journal", "engine/topology"},
	"engine/reconcile":          {"abi", "engine/deploy", "engine/draft", "engine/journal", "engine/topology"},
	"engine/tools":              {"abi", "engine/deploy", "engine/draft", "engine/internal/errtext", "engine/journal", "engine/outlook", "engine/topology", "internal/misfit", "internal/plainly"},
	"engine/diff":               {"engine/deploy", "engine/journal", "engine/topology"},
	"engine/archive":            {"abi", "engine/internal/errtext", "engine/journal"},
	"engine/inspect":            {"abi", "engine/journal", "engine/topology"},
	"engine/journal":            {"abi", "engine/internal/errtext", "engine/topology"},
	"engine/outlook":            {"engine/journal"},
	"engine/rehearsal":          {"abi", "engine/journal"},
	"engine/topology":           {"abi"},
	"engine/storetest":          {"abi", "engine/journal"},

	// Packages that the engine uses and that do not depend on it.
	"engine/internal/approval":    {"abi", "engine/deploy", "engine/internal/errtext", "engine/internal/message", "engine/internal/timing", "engine/journal"},
	"engine/internal/closing":     {"abi", "engine/internal/errtext", "engine/journal"},
	"engine/internal/cursors":     {"engine/journal"},
	"engine/internal/deque":       {},
	"engine/internal/effects":     {"abi", "engine/inspect", "engine/internal/errtext", "engine/internal/veil", "engine/journal", "engine/rehearsal"},
	"engine/internal/errtext":     {"abi"},
	"engine/internal/failures":    {"abi", "engine/deploy"},
	"engine/internal/heapwatch":   {},
	"engine/internal/hibernation": {},
	"engine/internal/idle":        {},
	"engine/internal/ids":         {"engine/draft", "engine/journal"},
	"engine/internal/letterbox":   {"abi", "engine/internal/errtext", "engine/journal"},
	"engine/internal/lookup":      {"abi", "engine/internal/errtext", "engine/journal", "engine/topology"},
	"engine/internal/message":     {"abi", "engine/internal/errtext", "engine/journal"},
	"engine/internal/modules":     {"abi"},
	"engine/internal/observe":     {"abi", "engine/internal/ring", "engine/journal"},
	"engine/internal/outbound":    {"abi", "capability", "engine/deploy", "engine/inspect", "engine/internal/errtext", "engine/internal/message", "engine/internal/spending", "engine/journal", "internal/contain"},
	"engine/internal/outlets":     {"abi", "engine/deploy", "engine/internal/effects", "engine/internal/errtext", "engine/internal/message", "engine/journal"},
	"engine/internal/planstore":   {"abi", "engine/diff", "engine/internal/errtext", "engine/internal/outbound", "engine/journal"},
	"engine/internal/recall":      {"engine/deploy", "engine/internal/storemeta", "engine/journal"},
	"engine/internal/refill":      {"engine/journal"},
	"engine/internal/regroup":     {"engine/journal"},
	"engine/internal/regrow":      {"engine/journal", "engine/topology"},
	"engine/internal/ring":        {},
	"engine/internal/runqueue":    {"engine/internal/idle"},
	"engine/internal/serialstore": {"engine/journal"},
	"engine/internal/sorted":      {},
	"engine/internal/species":     {"abi", "engine/deploy", "engine/draft", "engine/internal/errtext", "engine/internal/modules", "engine/internal/specs", "engine/journal", "engine/outlook"},
	"engine/internal/specs":       {"abi", "engine/deploy", "engine/draft", "engine/internal/errtext", "engine/journal", "internal/plainly"},
	"engine/internal/spending":    {"abi", "capability", "engine/deploy", "engine/internal/stopping", "engine/internal/storemeta", "engine/journal"},
	"engine/internal/stopping":    {"abi", "capability", "engine/deploy", "engine/internal/errtext", "engine/internal/storemeta", "engine/journal"},
	"engine/internal/storemeta":   {"abi", "engine/deploy", "engine/draft", "engine/journal"},
	"engine/internal/timing":      {},
	"engine/internal/turnctx":     {},
	"engine/internal/veil":        {"abi", "engine/deploy", "engine/journal"},

	"host":                      {"abi", "host/translation", "host/wasmbin", "host/wasmbin/meter", "internal/near", "internal/scratch", "internal/selflimit"},
	"host/translation":          {},
	"host/translation/generate": {"abi", "host"},
	"host/wasmbin":              {"abi"},
	"host/wasmbin/meter":        {"abi", "host/wasmbin"},
	"plugins":                   {"abi", "abi/pack", "internal/near"},
	"recipes":                   {"abi", "capability", "capability/httpcap", "capability/llmcap", "connector", "engine/deploy", "engine/journal", "internal/misfit", "internal/near", "recipes/policy", "internal/plainly", "internal/contain"},
	"recipes/editor":            {"abi", "recipes"},
	"recipes/policy":            {"abi", "engine/deploy", "engine/journal", "internal/near", "internal/selflimit", "internal/unhurried"},
	"replay":                    {"abi", "capability", "engine", "engine/journal", "engine/rehearsal", "engine/tools"},
	"sqlitestore":               {"abi", "engine/journal"}, // and the packages below it
	"cmd/terrarium":             {"", "abi", "abi/pack", "conformance/creatures", "conformance/hostile", "conformance/hosts", "conformance/report", "conformance/requirements", "conformance/stage", "conformance/stores", "connector", "connector/files", "engine", "engine/deploy", "engine/diff", "engine/inspect", "engine/journal", "engine/storetest", "host", "host/translation", "host/translation/generate", "cmd/internal/lsp", "internal/gcpace", "internal/near", "internal/selflimit", "cmd/internal/project", "cmd/internal/watch", "operations", "plugins", "plugins/native", "recipes", "replay", "serve", "sqlitestore", "telemetry", "internal/plainly"},
	"cmd/internal/lsp":          {"abi", "recipes", "recipes/editor"},
	"cmd/internal/project":      {"abi", "abi/pack", "host", "internal/near", "cmd/internal/watch", "plugins", "sdk"},
	"cmd/internal/watch":        {"abi"},
	"sdk":                       {},
	"sdk/go/terrarium":          {},

	"conformance/hostile/sessions": {"sqlitestore"},

	"sqlitestore/internal/files":     {"abi"},
	"sqlitestore/internal/failpoint": {"sqlitestore/internal/files"},
	"sqlitestore/internal/sqlite3":   {},
	"sqlitestore/sqlitetest":         {"sqlitestore/internal/sqlite3"},
	"sqlitestore/internal/sqlite":    {"abi", "sqlitestore/internal/failpoint", "sqlitestore/internal/files", "sqlitestore/internal/sqlite3"},
	"sqlitestore/internal/storefile": {"abi", "engine/journal", "sqlitestore/internal/files", "sqlitestore/internal/sqlite"},
	"sqlitestore/internal/rebuild":   {"abi", "engine/journal", "sqlitestore/internal/catalog", "sqlitestore/internal/failpoint", "sqlitestore/internal/files", "sqlitestore/internal/search", "sqlitestore/internal/sqlite", "sqlitestore/internal/storefile"},
	"sqlitestore/internal/search":    {"abi", "engine/journal", "sqlitestore/internal/files", "sqlitestore/internal/sqlite"},
	"sqlitestore/internal/catalog":   {"abi", "engine/journal", "sqlitestore/internal/failpoint", "sqlitestore/internal/files", "sqlitestore/internal/sqlite", "sqlitestore/internal/storefile"},
	"engine/draft/drafttest":         {"engine/deploy", "engine/draft", "engine/journal", "engine/topology"}}

// owners says which single package may import a library.
var owners = map[string]string{
	"github.com/agext/levenshtein":  "internal/near",
	"github.com/fsnotify/fsnotify":  "cmd/internal/watch",
	"github.com/tetratelabs/wazero": "host",
	"github.com/hashicorp/hcl":      "recipes",
	"github.com/zclconf/go-cty":     "recipes",
	"github.com/dop251/goja":        "recipes/policy",
	"github.com/dlclark/regexp2":    "recipes/policy", // whose default it changes for a moment
	"github.com/mattn/go-sqlite3":   "sqlitestore/internal/sqlite3",
	"modernc.org":                   "sqlitestore/internal/sqlite3",
	"github.com/spf13/cobra":        "cmd/terrarium",
}

// besides lists packages that may import a library of another owner.
var besides = map[string]string{
	"conformance/hosts/wazero": "github.com/tetratelabs/wazero", // another host, which shares nothing with package host
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, listed := layers[room]
		for _, imported := range p.Imports {
			if rest, ours := strings.CutPrefix(imported, module+"/"); ours && strings.HasPrefix(room, "internal/") && rest != "abi" && !strings.HasPrefix(rest, "internal/") {
				t.Errorf("%s imports %s; every package may import what is in internal, which therefore imports only abi", room, rest)
			}
			if free(room) {
				continue
			}
			if rest, ours := strings.CutPrefix(imported, module); ours {
				rest = strings.TrimPrefix(rest, "/")
				if !slices.Contains(allowed, rest) && !strings.HasPrefix(rest, room+"/internal/") {
					t.Errorf("%s imports %s; it may import only %v", room, rest, allowed)
				}
			}
			for library, owner := range owners {
				if strings.HasPrefix(imported, library) && room != owner && !strings.HasPrefix(room, owner+"/") && besides[room] != library {
					t.Errorf("%s imports %s, which only %s may", room, imported, owner)
				}
			}
			if imported == "testing" && !strings.HasSuffix(room, "test") {
				t.Errorf("%s imports testing in code that is not a test", room)
			}
		}
		if !listed && !free(room) {
			t.Errorf("the room %s is new: say in layers what it may import", room)
		}
	}
}

// Free packages build, generate, measure or test, or are internal to another
// package that lists their purpose; nothing else imports them.
func free(room string) bool {
	if strings.HasPrefix(room, "engine/internal/") {
		return room == "engine/internal/sim"
	}
	if _, listed := layers[room]; listed {
		return false
	}
	return strings.HasPrefix(room, "internal/") || strings.Contains(room, "/internal/") || room == "abi/gen" ||
		strings.HasPrefix(room, "plugins/") || room == "sdk" || strings.HasPrefix(room, "sdk/go/terrarium/") || strings.HasPrefix(room, "sdk/go/examples/") || strings.Contains(room, "testdata") ||
		strings.HasPrefix(room, "examples/")
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		if len(p.Doc) < 20 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if p.Name == "main" || strings.Contains(p.ImportPath, "/internal/") {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if len(files) == 0 {
			continue
		}
		d, err := doc.NewFromFiles(fset, files, p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range undocumented(d) {
			t.Errorf("%s.%s has no comment", p.ImportPath, name)
		}
	}
}

// undocumented lists exported functions, types and methods without a comment.
// Values in a group are documented by the group's comment or their own.
func undocumented(d *doc.Package) []string {
	var out []string
	functions := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			if f.Doc == "" && !conventional[f.Name] {
				out = append(out, prefix+f.Name)
			}
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			if v.Doc == "" && !documentedInside(v.Decl) {
				out = append(out, v.Names[0])
			}
		}
	}
	functions("", d.Funcs)
	values(d.Consts)
	values(d.Vars)
	for _, typ := range d.Types {
		if typ.Doc == "" {
			out = append(out, typ.Name)
		}
		functions("", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
		values(typ.Consts)
		values(typ.Vars)
	}
	return out
}

// conventional lists methods whose names say what they do.
var conventional = map[string]bool{
	"Error": true, "Unwrap": true, "String": true, "Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true,
}

func documentedInside(d *ast.GenDecl) bool {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if ok && v.Doc == nil && v.Comment == nil {
			return false
		}
	}
	return true
}

// maxLines is the length above which a file usually has two ideas.
const maxLines = 600

func TestFilesStayReadable(t *testing.T) {
	for path, content := range sources(t, ".go") {
		if n := bytes.Count(content, []byte("\n")); n > maxLines && !generated(content) {
			t.Errorf("%s has %d lines; more than %d are usually two ideas", path, n, maxLines)
		}
	}
}

func generated(content []byte) bool {
	return bytes.Contains(content[:min(len(content), 300)], []byte("DO NOT EDIT"))
}

// leftovers lists marks of unfinished work. They are split so that this file
// does not contain them.
var leftovers = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// machinePath matches a path on a developer's machine rather than in the
// project.
var machinePath = regexp.MustCompile(`(^|[\s"'(=])/(home|root|Users|work)/\w`)

func TestNothingIsLeftOver(t *testing.T) {
	for path, content := range sources(t, ".go", ".md", ".hcl", ".c", ".h", ".wat", ".mk", ".sql", "Makefile") {
		lines := bufio.NewScanner(bytes.NewReader(content))
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if leftovers.Match(lines.Bytes()) {
				t.Errorf("%s:%d: %s", path, n, lines.Text())
			}
			if machinePath.Match(lines.Bytes()) {
				t.Errorf("%s:%d names a machine's path: %s", path, n, lines.Text())
			}
		}
	}
}

// sources returns the repository's files with certain endings, by path.
// notOurs are folders of builds and of sources that others maintain.
var notOurs = []string{"bin", "target", "node_modules", "quickjs"}

func sources(t *testing.T, endings ...string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != top || slices.Contains(notOurs, d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(path, e) }) {
			return nil
		}
		content, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, top+string(filepath.Separator))] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d files were found", len(out))
	}
	return out
}

// Random tests are repeatable: those that draw with rapid import seeded, and
// the others take their seeds from it, or count them up.
func TestRandomTestsAreSeeded(t *testing.T) {
	drawn := regexp.MustCompile(`\brand\.(Uint64|Uint32|Int|IntN|Int64N|Uint64N|N|Perm|Shuffle|Float64)(\[\w+\])?\(|PCG\(uint64\(time\.Now`)
	const rapid, seeded = `"pgregory.net/rapid"`, `internal/seeded"`
	needs, has := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, dir := string(b), filepath.Dir(path)
		if strings.Contains(text, seeded) {
			has[dir] = true
		}
		if filepath.Base(dir) == "rules" {
			return nil
		}
		if strings.Contains(text, rapid) {
			needs[dir] = path
		}
		if at := drawn.FindString(text); at != "" && strings.Contains(text, `"math/rand/v2"`) {
			t.Errorf("%s draws with %s…) from a new seed at every run; take it from internal/seeded", path, at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(needs) < 10 {
		t.Fatalf("only %d packages have random tests", len(needs))
	}
	for dir, path := range needs {
		if !has[dir] {
			t.Errorf("%s draws with rapid, and no test of its package imports internal/seeded", path)
		}
	}
}
