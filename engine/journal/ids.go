package journal

import "strings"

// An id is a letter for the kind of thing that it names, and then idLength characters of
// idAlphabet.
const (
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength   = 16
)

// IsID reports whether a name has the form of an id.
func IsID(kind byte, name string) bool {
	return len(name) == 1+idLength && name[0] == kind && strings.Trim(name[1:], idAlphabet) == ""
}
