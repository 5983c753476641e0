package project

import (
	"embed"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sdk"
)

//go:embed templates
var templates embed.FS

// maxName is the length in bytes of the longest name, which is that of a package in Zig.
const maxName = 32

var (
	goodName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	badLetter = regexp.MustCompile(`[^a-z0-9]+`)
)

// taken are names that compilers, build tools or the kits use for something else.
var taken = strings.Fields(`terrarium build test core std alloc main
	abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop macro match mod move
	mut override priv proc_macro pub ref return self static struct super trait true try type typeof unsafe unsized use virtual where while yield`)

// CheckName returns an error with the code [abi.InvalidArgument] unless a creature's
// project can have the name in every language.
func CheckName(name string) error {
	e := &abi.Error{Code: abi.InvalidArgument}
	suggestion := strings.Trim(badLetter.ReplaceAllString(strings.ToLower(name), "_"), "_")
	suggestion = strings.TrimLeft(suggestion, "0123456789_")
	suggestion = suggestion[:min(len(suggestion), maxName)]
	switch {
	case !goodName.MatchString(name) || len(name) > maxName:
		e.Message = fmt.Sprintf("%.64q is not a name: use at most %d lower-case letters, digits and _, beginning with a letter", name, maxName)
		e.Remedy = "choose a name such as frog"
		if suggestion != "" && suggestion != name && CheckName(suggestion) == nil {
			e.Remedy = "use " + suggestion
		}
	case slices.Contains(taken, name) || strings.HasSuffix(name, "_test"):
		e.Message = fmt.Sprintf("the name %s is taken: compilers or build tools use it for something else", name)
		e.Remedy = "choose another name, such as my_" + strings.TrimSuffix(name, "_test")
	default:
		return nil
	}
	return e
}

// Create writes a project with the name into a folder, which it makes if there is none, and
// returns the names of the author's files in it. A folder that is not empty is refused with
// the code [abi.AlreadyExists]. If it fails, it removes what it has written.
func Create(dir, name string, l *Language) ([]string, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	files, err := render(name, l)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, &abi.Error{Code: abi.AlreadyExists, Message: "the folder cannot be made, because the path is taken", Remedy: "choose another name, or another folder with --dir",
			IDs: map[string]string{"path": dir}, Err: err}
	case len(entries) > 0:
		return nil, &abi.Error{Code: abi.AlreadyExists, Message: "the folder exists and is not empty", Remedy: "choose another name, or another folder with --dir",
			IDs: map[string]string{"path": dir}}
	}
	var own []string
	for _, file := range files {
		if err := write(filepath.Join(dir, filepath.FromSlash(file.name)), file.text); err != nil {
			for _, written := range files {
				err = errors.Join(err, removeIfThere(filepath.Join(dir, filepath.FromSlash(written.name))))
			}
			return nil, err
		}
		if !strings.HasPrefix(file.name, kitFolder+"/") {
			own = append(own, file.name)
		}
	}
	slices.Sort(own)
	return own, nil
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rendered is a file of a new project; its name has slashes.
type rendered struct{ name, text string }

// render returns the files of a new project.
func render(name string, l *Language) (files []rendered, err error) {
	add := func(fsys fs.FS, from, to string) {
		text, failed := fs.ReadFile(fsys, from)
		err = errors.Join(err, failed)
		to = strings.ReplaceAll(to, "NAME", name)
		files = append(files, rendered{to, adapt(l, to, string(text), name)})
	}
	for _, part := range l.kit {
		info, failed := fs.Stat(sdk.Files, part.from)
		if failed != nil {
			return nil, failed
		}
		if !info.IsDir() {
			add(sdk.Files, part.from, part.to)
			continue
		}
		root, recursive := part.from, part.from == "rust/src" || part.from == "zig/src"
		err = errors.Join(err, fs.WalkDir(sdk.Files, root, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && file != root && !recursive:
				return fs.SkipDir
			case !d.IsDir() && !strings.HasSuffix(file, "_test.go"):
				add(sdk.Files, file, part.to+strings.TrimPrefix(file, root))
			}
			return nil
		}))
	}
	own, failed := fs.ReadDir(templates, "templates/"+l.Name)
	if failed != nil {
		err = errors.Join(err, failed)
	}
	for _, entry := range own {
		to := entry.Name()
		switch to {
		case "go.mod.txt": // a go.mod would make the template a module that cannot be embedded
			to = "go.mod"
		case "kit.mod.txt":
			to = kitFolder + "/go.mod"
		}
		add(templates, path.Join("templates", l.Name, entry.Name()), to)
	}
	add(templates, "templates/recipe.hcl", "NAME.hcl")
	add(templates, "templates/README.md", "README.md")
	add(templates, "templates/gitignore.txt", ".gitignore")
	if l.withManifest() {
		add(templates, "templates/manifest.json", "manifest.json")
	}
	return files, err
}

var wordShout = regexp.MustCompile(`\bshout\b`)

// adapt fills in the name of the creature. Files of the kit stay as they are, except for
// what refers to files that are left out.
func adapt(l *Language, file, text, name string) string {
	switch {
	case file == kitFolder+"/Cargo.toml":
		text, _, _ = strings.Cut(text, "[workspace]") // of the examples
		return text
	case strings.HasPrefix(file, kitFolder+"/") && !strings.HasSuffix(file, "/go.mod"):
		return text
	}
	test := l.test
	if test != "" {
		test = fmt.Sprintf("%-20s # runs the unit tests, with the kit's fake host\n", test)
	}
	text = strings.NewReplacer(
		"NAME", name,
		"TITLE", l.Title,
		"UNITTEST", test,
		"TOOLS", l.tools,
		"FILES", l.files(),
		// The name decides the upper half of the number. The lower half tells packages of
		// the same name apart.
		"FINGERPRINT", fmt.Sprintf("%08x%08x", crc32.ChecksumIEEE([]byte("creature")), crc32.ChecksumIEEE([]byte("terrarium "+name))),
		`"terrarium-assemblyscript`, `"./`+kitFolder,
	).Replace(text)
	return wordShout.ReplaceAllString(text, name)
}

// files returns the last part of the README of a project.
func (l *Language) files() string {
	var paragraphs []string
	if len(l.kit) > 0 {
		paragraphs = append(paragraphs, "`"+kitFolder+"` is the kit for "+l.Title+", from the version of terrarium that created this folder.")
	}
	if l.withManifest() {
		paragraphs = append(paragraphs, "`manifest.json` describes the creature. The build packs it into the module.")
	}
	if l.after != "" {
		paragraphs = append(paragraphs, l.after)
	}
	return strings.Join(paragraphs, "\n\n")
}
