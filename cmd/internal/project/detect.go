package project

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/seed47132306/terrarium/abi"
)

// A Project is a folder with the source of a creature.
type Project struct {
	Dir      string
	Language *Language
	// Name is the name of the module without .wasm; "" if the compiler decides.
	Name string
	// Sources are the files to compile, by name in the folder, for languages whose
	// compilers are given files.
	Sources []string
}

// sought lists, for errors, what a folder must have.
const sought = "Cargo.toml (Rust), build.zig (Zig), package.json with assemblyscript (AssemblyScript), go.mod or main.go (Go), " +
	"*.c (C), *.cpp (C++), *.wat (WAT), *.js (JavaScript)"

// maxDescription is the size in bytes of the largest package.json and go.mod that is read.
const maxDescription = 1 << 20

// Detect recognizes the language of a folder. The error has the code [abi.NotFound] if the
// folder is no project.
func Detect(dir string) (*Project, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		e := &abi.Error{Code: abi.NotFound, Message: "the folder cannot be read", Remedy: "name the folder of a creature, or make one with terrarium new",
			IDs: map[string]string{"path": dir}, Err: err}
		return nil, e
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") { // .#a.c is the lock of an editor
			names = append(names, entry.Name())
		}
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Project{Dir: absolute, Name: filepath.Base(absolute)}
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has("Cargo.toml"):
		p.Language, p.Name = &rust, ""
	case has("build.zig"):
		p.Language, p.Name = &zig, ""
	case has("package.json"):
		npm, err := p.packageOfAssemblyScript(names)
		if npm || err != nil {
			return p, err
		}
		return p.bySources(names)
	case has("go.mod"):
		p.Language = &golang
		return p, p.nameOfGo()
	case has("main.go"):
		p.Language = &golang
	default:
		return p.bySources(names)
	}
	return p, nil
}

// packageOfAssemblyScript reports whether a folder with a package.json is in AssemblyScript,
// and finds the source file to compile.
func (p *Project) packageOfAssemblyScript(names []string) (bool, error) {
	text, err := p.read("package.json")
	if err != nil {
		return false, err
	}
	var npm struct {
		Name                          string
		Dependencies, DevDependencies map[string]any
	}
	if err := json.Unmarshal(text, &npm); err != nil {
		return false, p.refuse(abi.InvalidArgument, "package.json cannot be read", "correct it", err)
	}
	if npm.DevDependencies["assemblyscript"] == nil && npm.Dependencies["assemblyscript"] == nil && !slices.Contains(names, "asconfig.json") {
		return false, nil
	}
	p.Language = &assemblyScript
	const entry = "assembly/index.ts"
	if _, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(entry))); err == nil {
		p.Sources = []string{entry}
		if goodName.MatchString(npm.Name) {
			p.Name = npm.Name
		}
		return true, nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".d.ts") {
			p.Sources = append(p.Sources, name)
		}
	}
	if len(p.Sources) != 1 {
		return true, p.refuse(abi.NotFound, "the folder has no entry file", "give the entry file the name "+entry+", or keep only one *.ts in the folder", nil)
	}
	p.Name = strings.TrimSuffix(p.Sources[0], ".ts")
	return true, nil
}

// nameOfGo names the Wasm module after the Go module.
func (p *Project) nameOfGo() error {
	text, err := p.read("go.mod")
	if err != nil {
		return err
	}
	if path := modfile.ModulePath(text); path != "" {
		p.Name = path[strings.LastIndexByte(path, '/')+1:]
	}
	return nil
}

// bySources recognizes languages without a file that describes the project.
func (p *Project) bySources(names []string) (*Project, error) {
	endings := map[*Language][]string{&c: {".c"}, &cpp: {".cpp", ".cc", ".cxx"}, &wat: {".wat"}, &javaScript: {".js", ".mjs"}}
	var found []*Language
	for _, l := range All {
		var sources []string
		for _, name := range names {
			stem := strings.TrimSuffix(name, filepath.Ext(name))
			test := strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".config")
			if slices.Contains(endings[l], filepath.Ext(name)) && !test {
				sources = append(sources, name)
			}
		}
		if len(sources) > 0 {
			found = append(found, l)
			p.Language, p.Sources = l, sources
		}
	}
	switch {
	case len(found) == 0:
		return nil, p.refuse(abi.NotFound, "the folder is not a creature: it has none of "+sought, "name the folder of a creature, or make one with terrarium new", nil)
	case len(found) > 1:
		return nil, p.refuse(abi.InvalidArgument, "the folder has sources in "+found[0].Title+" and "+found[1].Title, "use one folder for each creature", nil)
	case len(p.Sources) > 1 && (p.Language == &wat || p.Language == &javaScript):
		return nil, p.refuse(abi.InvalidArgument, "the folder has several creatures: "+strings.Join(p.Sources, ", "), "use one folder for each creature", nil)
	}
	if len(p.Sources) == 1 {
		p.Name = strings.TrimSuffix(p.Sources[0], filepath.Ext(p.Sources[0]))
	}
	return p, nil
}

// read reads a small file of the folder.
func (p *Project) read(name string) ([]byte, error) {
	path := filepath.Join(p.Dir, name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, p.refuse(abi.NotFound, name+" cannot be read", "", err)
	case !info.Mode().IsRegular() || info.Size() > maxDescription:
		return nil, p.refuse(abi.InvalidArgument, name+" is too large, or not a file", "replace it", fs.ErrInvalid)
	}
	return os.ReadFile(path)
}

func (p *Project) refuse(code abi.Code, message, remedy string, cause error) error {
	return &abi.Error{Code: code, Message: message, Remedy: remedy, IDs: map[string]string{"path": p.Dir}, Err: cause}
}
