package recipes

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The values of [Options.Isolation].
const (
	// IsolateForeign runs the policies of recipes that another user may have written in
	// separate processes, whatever these recipes say, and the policies of other recipes
	// as they say. The empty string means the same.
	IsolateForeign = "foreign"
	// IsolateAll runs all policies in separate processes.
	IsolateAll = "all"
	// IsolateNone runs all policies as their recipes say.
	IsolateNone = "none"
)

// Isolations are the values of [Options.Isolation].
func Isolations() []string { return []string{IsolateForeign, IsolateAll, IsolateNone} }

func (o Options) checkIsolation() *Diagnostic {
	if o.Isolation == "" || slices.Contains(Isolations(), o.Isolation) {
		return nil
	}
	return &Diagnostic{Severity: Error, Summary: "Unknown isolation", Detail: fmt.Sprintf("There is no isolation %q for policies.", o.Isolation), Remedy: fmt.Sprintf("Use one of: %s.", strings.Join(Isolations(), ", "))}
}

// notOurs says why a file may come from another user than the user of this process, or
// returns "". It checks which users could have written the file: a user other than this
// one and root, or every user. Files without known owners, as in a copy that a session
// keeps and on systems without owners, count as ours.
func notOurs(info fs.FileInfo) string {
	switch owner, known := ownerOf(info); {
	case known && owner != 0 && owner != ourselves():
		return "belongs to another user"
	case known && info.Mode().Perm()&worldWritable != 0 && info.Mode()&fs.ModeSticky == 0:
		return "is writable by every user"
	}
	return ""
}

const worldWritable = 0o002

// noteOwner records that a file belongs to another user. One such file marks the whole
// folder.
func (f *folder) noteOwner(name string, info fs.FileInfo) {
	if why := notOurs(info); why != "" && f.foreign == "" {
		f.foreign = name + " " + why
	}
}
