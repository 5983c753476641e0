package httpcap

import (
	"cmp"
	"slices"
	"strings"
)

// shortestSecret is the length of the shortest header value that is removed from results.
// Shorter values could also occur by chance.
const shortestSecret = 8

// Hidden replaces secrets in results.
const Hidden = "(sensitive value)"

// Secrets returns what must not be in the results of requests with these headers: values
// of at least 8 bytes, with and without a first word such as Bearer. The longest is
// first, because another secret may be a part of it: replacing the shorter one first
// would leave the rest of the longer one.
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
