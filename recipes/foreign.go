package recipes

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The values of [Options.Isolation].
const (
	// IsolateForeign runs the policies of recipes that come from somebody else in
	// processes of their own, whatever these recipes say, and those of others as they say.
	// It is the same as the empty text.
	IsolateForeign = "foreign"
	// IsolateAll runs all policies in processes of their own.
	IsolateAll = "all"
	// IsolateNone believes recipes: their policies run as they say.
	IsolateNone = "none"
)

// Isolations are the values of [Options.Isolation].
func Isolations() []string { return []string{IsolateForeign, IsolateAll, IsolateNone} }

// checkIsolation refuses an option that is none.
func (o Options) checkIsolation() *Diagnostic {
	if o.Isolation == "" || slices.Contains(Isolations(), o.Isolation) {
		return nil
	}
	return &Diagnostic{Severity: Error, Summary: "Unknown isolation", Detail: fmt.Sprintf("There is no isolation %q for policies.", o.Isolation), Remedy: fmt.Sprintf("Use one of: %s.", strings.Join(Isolations(), ", "))}
}

// notOurs says why what was read may come from somebody else than the user of this
// process; "" if it does not. It asks who could have written it: another user than this
// one and the system's, or any. What cannot be known, as in a copy that a session keeps
// and on systems without owners, counts as ours.
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

// noteOwner notes whether a file of the folder belongs to another user. The first that does
// makes the folder one that does.
func (f *folder) noteOwner(name string, info fs.FileInfo) {
	if why := notOurs(info); why != "" && f.foreign == "" {
		f.foreign = name + " " + why
	}
}
