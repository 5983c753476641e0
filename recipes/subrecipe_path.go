package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed47132306/terrarium/abi"
)

// beneath finds the recipe that a sub-recipe's source names: a folder, or a file. It must
// be within the folder f, even through symbolic links; its own files must be within its
// own folder.
func (f *folder) beneath(source string) (*folder, []string, *Diagnostic) {
	if source == "" {
		return nil, nil, &Diagnostic{Summary: "No source", Detail: "The path is empty.", Remedy: `Write the path of a folder or file, such as "./alerts".`}
	}
	rel, err := f.relative(source)
	if err != nil {
		return nil, nil, sourceFault(source, err)
	}
	dir, names := rel, []string(nil)
	if isRecipe(path.Base(rel)) {
		dir, names = path.Dir(rel), []string{path.Base(rel)}
	}
	sub, err := f.enter(dir)
	if err != nil {
		return nil, nil, sourceFault(source, err)
	}
	if names != nil {
		sub.name = recipeName(names[0])
		if _, err := sub.file(names[0]); err != nil {
			sub.close()
			return nil, nil, sourceFault(source, err)
		}
		return sub, names, nil
	}
	names, d := sub.recipes()
	if d != nil {
		sub.close()
	}
	return sub, names, d
}

func (f *folder) enter(rel string) (*folder, error) {
	sub := &folder{name: path.Base(rel), shown: filepath.Join(f.shown, filepath.FromSlash(rel)), abs: under(f.abs, rel),
		limit: f.limit, unsaved: f.unsaved, read: map[string][]byte{}, prefix: f.prefix}
	if rel != "." {
		sub.prefix += rel + "/"
	}
	if f.kept != nil {
		sub.kept = map[string]string{}
		for name, text := range f.kept {
			if inner, ok := strings.CutPrefix(name, strings.TrimPrefix(rel+"/", "./")); ok {
				sub.kept[inner] = text
			}
		}
		return sub, nil
	}
	if f.root == nil {
		info, err := fs.Stat(f.files, rel)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: rel, Err: syscall.ENOTDIR}
		}
		if err == nil {
			sub.files, err = fs.Sub(f.files, rel)
		}
		if err != nil {
			return nil, f.refused(rel, err)
		}
		return sub, nil
	}
	var err error
	if sub.root, err = f.root.OpenRoot(filepath.FromSlash(rel)); err != nil {
		return nil, f.refused(rel, err)
	}
	sub.files = sub.root.FS()
	return sub, nil
}

func (f *folder) recipes() ([]string, *Diagnostic) {
	if f.kept == nil {
		entries, err := fs.ReadDir(f.files, ".")
		if err != nil {
			return nil, sourceFault(f.shown, err)
		}
		return recipesAmong(entries, f.shown, unsavedIn(f.unsaved, f.abs))
	}
	var names []string
	for name := range f.kept {
		if isRecipe(name) && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, &Diagnostic{Summary: "No recipe in the copy", Detail: "The stored copy has no file of the sub-recipe."}
	}
	return names, nil
}

// sourceFault reports a source without a recipe.
func sourceFault(source string, err error) *Diagnostic {
	d := &Diagnostic{Summary: "Sub-recipe cannot be read", Detail: sentence(cause(err))}
	var refused *abi.Error
	if !errors.As(err, &refused) {
		return d
	}
	d.Remedy = sentence(refused.Remedy)
	switch refused.Code {
	case abi.NotFound:
		d.Summary, d.Detail = "Sub-recipe not found", fmt.Sprintf("There is no folder or file %q in the recipe's folder.", source)
		if m := didYouMean.FindStringSubmatch(refused.Message); m != nil {
			d.Suggestion = m[1]
		}
	case abi.Denied:
		d.Summary, d.Detail = "Sub-recipe outside the recipe", fmt.Sprintf("%q is outside the recipe's folder.", source)
		d.Remedy = "Copy it into the recipe's folder."
	}
	return d
}
