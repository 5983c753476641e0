package journal

import "strings"

// idAlphabet are the characters of ids after their first letter, which says
// what they name; there are idLength of them.
const (
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength   = 16
)

// IsID reports whether a name has the form of an id.
func IsID(kind byte, name string) bool {
	return len(name) == 1+idLength && name[0] == kind && strings.Trim(name[1:], idAlphabet) == ""
}
