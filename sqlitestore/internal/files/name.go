package files

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/seed47132306/terrarium/abi"
)

// maxName is the longest name in bytes that the usual file systems allow, less the
// suffixes of a database.
const maxName = 255 - len(".orphan-journal.partial")

// Name is the plain name of a file. The zero value names nothing.
type Name struct{ text string }

// NameOf checks a name from a file or a user. It refuses names that are not one element
// of a path, and names that cannot be displayed as they are.
func NameOf(text string) (Name, error) {
	unfit := text == "" || len(text) > maxName || text == "." || text == ".." || !filepath.IsLocal(text) ||
		strings.ContainsAny(text, `/\:`) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
	if unfit {
		return Name{}, &abi.Error{Code: abi.Storage, Op: "open", Message: "not the plain name of a file: " + shown(text),
			Remedy: "use the directory only if you know where it comes from; nothing in it has been changed"}
	}
	return Name{text}, nil
}

// String returns the name.
func (n Name) String() string { return n.text }

// Stores is the directory in a session directory in which the stores are.
const Stores = "stores"

// InStores returns the path of a store of a session directory.
func InStores(dir string, n Name) string { return filepath.Join(dir, Stores, n.text) }

// mostShown bounds how much of a name a message repeats.
const mostShown = 80

func shown(text string) string {
	if len(text) > mostShown {
		text = text[:mostShown] + "…"
	}
	return strings.ToValidUTF8(quote(text), "?")
}
