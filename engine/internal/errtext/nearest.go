package errtext

import (
	"cmp"
	"slices"
	"strings"
)

// NearestFirst sorts what could have been named instead of wanted: what is most like it
// comes first, and the rest keeps its order. It compares names roughly, because there may
// be very many.
func NearestFirst[T any](wanted string, all []T, name func(T) string) {
	wanted = strings.ToLower(Clip(wanted))
	slices.SortStableFunc(all, func(a, b T) int {
		return cmp.Compare(unlike(wanted, strings.ToLower(name(a))), unlike(wanted, strings.ToLower(name(b))))
	})
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
