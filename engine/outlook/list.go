package outlook

import "slices"

// Oldest keeps the first few of many, in order, without sorting them all.
type Oldest[T any] struct {
	Max     int
	Compare func(a, b T) int
	list    []T
	total   int
}

// Add adds one of the many.
func (e *Oldest[T]) Add(x T) {
	e.total++
	if len(e.list) == e.Max {
		if e.Compare(x, e.list[e.Max-1]) >= 0 {
			return
		}
		e.list = e.list[:e.Max-1]
	}
	at, _ := slices.BinarySearchFunc(e.list, x, e.Compare)
	e.list = slices.Insert(e.list, at, x)
}

// ListOf describes what was kept.
func ListOf[T, D any](e *Oldest[T], describe func(T) D) AwareList[D] {
	out := AwareList[D]{Total: e.total, Items: make([]D, len(e.list)), Truncated: e.total - len(e.list)}
	for i, x := range e.list {
		out.Items[i] = describe(x)
	}
	return out
}

// Truncate returns the list of elements that are in order already.
func Truncate[T any](items []T, most int) AwareList[T] {
	shown := items[:min(len(items), most)]
	if shown == nil {
		shown = []T{}
	}
	return AwareList[T]{Total: len(items), Items: shown, Truncated: len(items) - len(shown)}
}
