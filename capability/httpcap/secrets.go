package httpcap

import (
	"cmp"
	"slices"
	"strings"
)

// shortestSecret is the length of the shortest header value that is removed from results.
// Shorter values would also be found by chance.
const shortestSecret = 8

// Hidden replaces secrets in results.
const Hidden = "(sensitive value)"

// Secrets returns what must not be in results of requests that have these headers: their
// values of at least 8 bytes, and what follows a first word such as Bearer. The longest is
// first, so that no rest of it remains when another is a part of it.
func Secrets(headers map[string]string) []string {
	var out []string
	for _, value := range headers {
		out = append(out, value)
		if _, token, ok := strings.Cut(value, " "); ok { // the scheme of Authorization
			out = append(out, token)
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return out
}
