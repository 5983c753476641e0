package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// maxListed bounds how many names a message lists; no choice has more.
const maxListed = 64

// enumerate joins names for a sentence, and truncates long lists.
func enumerate(names []string) string {
	if n := len(names) - maxListed; n > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// cause removes the operation and path from a file error, because messages have them
// already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// sentence adds a capital letter and a full stop to a clause.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
