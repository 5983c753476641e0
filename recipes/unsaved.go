package recipes

import (
	"path/filepath"
	"slices"
)

// hasUnsaved reports whether there is an unsaved text for the file at path.
func hasUnsaved(unsaved map[string][]byte, path string) bool {
	if len(unsaved) == 0 {
		return false
	}
	abs, err := filepath.Abs(path)
	return err == nil && unsaved[abs] != nil
}

// unsavedIn returns the names of the unsaved recipe files in a folder.
func unsavedIn(unsaved map[string][]byte, abs string) []string {
	var out []string
	for path := range unsaved {
		if name := filepath.Base(path); filepath.Dir(path) == abs && isRecipe(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// mayRead reports whether the caller allows a module or a catalog to be read, even
// through symbolic links.
func (o *Options) mayRead(path string) bool {
	if o.Within == "" {
		return true
	}
	top, err := filepath.EvalSymlinks(o.Within)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return beneathFolder(top, real)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return beneathFolder(top, filepath.Join(dir, filepath.Base(path)))
	}
	return beneathFolder(o.Within, path)
}

func beneathFolder(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}
