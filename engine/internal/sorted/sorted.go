// Package sorted lists what is in a map in a fixed order. Most maps of a change are empty:
// for those it allocates nothing, where the iterators of the standard library allocate four
// objects.
package sorted

import (
	"cmp"
	"slices"
)

// Keys returns the keys of a map, the smallest first.
func Keys[K cmp.Ordered, V any](m map[K]V) []K { return KeysFunc(m, cmp.Compare[K]) }

// KeysFunc returns the keys of a map in the order that compare defines.
func KeysFunc[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	if len(m) == 0 {
		return nil
	}
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, compare)
	return out
}

// ValuesFunc returns the values of a map in the order that compare defines.
func ValuesFunc[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	if len(m) == 0 {
		return nil
	}
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, compare)
	return out
}
