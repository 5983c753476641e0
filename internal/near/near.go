// Package near tells how alike two names are, for errors that ask whether another one
// was meant. It costs little whatever it is given.
package near

import "github.com/agext/levenshtein"

// MaxName is how long the names are, in bytes, that are compared: comparing costs the
// product of their lengths, and a name may come from anybody.
const MaxName = 64

// Far is the distance between names that are not compared.
const Far = 1 << 30

// Distance is how many letters have to be added, removed or replaced to make one name
// of the other, or [Far] if one of them is longer than [MaxName].
func Distance(a, b string) int {
	if len(a) > MaxName || len(b) > MaxName {
		return Far
	}
	return levenshtein.Distance(a, b, nil)
}
