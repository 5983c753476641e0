package abi

import "unicode"

// Deceptive reports whether a character is not allowed in a name: it controls
// a terminal, changes the direction or the line of the text around it, or is
// invisible, so that two names can look the same.
func Deceptive(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) ||
		r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u17b4' || r == '\u17b5' || r == '\u3164' || r == '\uffa0' || r == '\u2800'
}
