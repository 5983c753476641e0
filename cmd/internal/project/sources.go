package project

import (
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/cmd/internal/watch"
)

// Watched returns the files on which a build of the project depends, by their names. Other
// files that a compiler reads, such as those that a source includes as data, are not among
// them.
func (p *Project) Watched() watch.Set {
	return watch.Set{Tree: p.Dir, Match: func(name string) bool {
		return name == "manifest.json" || slices.Contains(p.Language.sources, name) || slices.Contains(p.Language.sources, filepath.Ext(name))
	}}
}
