package recipes

import (
	"strings"

	"github.com/seed47132306/terrarium/internal/near"
)

// maxCandidates is how many names one is compared with: a recipe may declare very many,
// and refer to as many that it does not.
const maxCandidates = 1000

// nearest returns the candidate that was probably meant by name, or nothing.
// Of equally near ones the first counts, so pass them in a stable order.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/3+2
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
