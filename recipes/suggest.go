package recipes

import (
	"strings"

	"github.com/agext/levenshtein"
)

// nearest returns the candidate that was probably meant by name, or nothing.
// Of equally near ones the first counts, so pass them in a stable order.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/3+2
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		d := levenshtein.Distance(name, c, nil)
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}
