package recipes

import (
	"strings"

	"github.com/seed47132306/terrarium/internal/near"
)

// maxCandidates bounds how many names are compared: a recipe may declare very many names,
// and refer to as many unknown ones.
const maxCandidates = 1000

// mostSlips is how many letters of a name may be wrong for its value to be checked as that of
// the name that was probably meant.
const mostSlips = 2

// isSlip reports whether a name is certainly a misspelt other one, if that is not empty.
func isSlip(name, meant string) bool {
	return meant != "" && (strings.EqualFold(name, meant) || near.Distance(name, meant) <= mostSlips)
}

// nearest returns the candidate that name was probably meant to be, or nothing. Of
// equally near candidates it returns the first, so pass them in a stable order.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(mostSlips, len(name)/3)+1
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if strings.EqualFold(c, name) {
			return c
		}
		d := near.Distance(name, c)
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}
