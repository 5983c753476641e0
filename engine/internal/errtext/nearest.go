package errtext

import (
	"slices"
	"strconv"
	"strings"
)

// Nearest returns some of what could have been named instead of wanted: what is most like
// it comes first, and the rest keeps its order. It compares every name once, and roughly.
func Nearest[T any](wanted string, most int, all []T, name func(T) string) []T {
	wanted = strings.ToLower(Clip(wanted))
	var alike [3][]T
	for _, x := range all {
		if as := &alike[unlike(wanted, strings.ToLower(name(x)))]; len(*as) < most {
			*as = append(*as, x)
		}
	}
	found := slices.Concat(alike[:]...)
	return found[:min(len(found), most)]
}

// AndMore ends a list of some of total things.
func AndMore(list []string, total int) string {
	if more := total - len(list); more > 0 {
		list = append(slices.Clip(list), "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(list, ", ")
}

// unlike is 0 for equal names, 1 if one contains the other or little differs, and 2
// otherwise.
func unlike(a, b string) int {
	switch {
	case a == b:
		return 0
	case a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a)), slips(a, b):
		return 1
	}
	return 2
}

// slips reports whether two names differ only in one place: what is equal at both ends
// leaves at most two bytes of each.
func slips(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 2 && len(b) <= 2
}
