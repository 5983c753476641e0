// Package near measures how similar two names are, for errors that suggest the
// name that was probably meant. Its cost is bounded for any input.
package near

import "github.com/agext/levenshtein"

// MaxName is the length in bytes of the longest names that are compared: a
// comparison costs the product of the lengths, and a name may come from an
// untrusted source.
const MaxName = 64

// Far is the distance of names too long to compare.
const Far = 1 << 30

// Distance returns how many letters have to be added, removed or replaced to
// turn one name into the other, or [Far] if one of them is longer than
// [MaxName].
func Distance(a, b string) int {
	if len(a) > MaxName || len(b) > MaxName {
		return Far
	}
	return levenshtein.Distance(a, b, nil)
}
