package meter

// Budget is the fuel of one run of a guest. It is granted in slices, so that
// the host regains control regularly. The count does not depend on their size.
//
// A Budget is not safe for concurrent use; the guest and its host take turns.
type Budget struct {
	Limit int64 // fuel of the whole run
	Slice int64 // fuel between two pauses; 0 or less means no pauses

	granted int64
}

// Begin starts a run and returns the initial value of the global fuel.
func (b *Budget) Begin() int64 {
	b.granted = b.Limit
	if b.Slice > 0 {
		b.granted = min(b.Slice, b.Limit)
	}
	return b.granted
}

// More returns the fuel with which to continue a guest that paused with
// negative fuel. It returns false if the limit is exceeded.
func (b *Budget) More(fuel int64) (int64, bool) {
	if b.Used(fuel) > b.Limit {
		return fuel, false
	}
	grant := b.Limit - b.granted
	if b.Slice > 0 && grant+fuel > b.Slice { // neither overflows: fuel is negative
		grant = b.Slice - fuel
	}
	b.granted += grant
	return fuel + grant, true
}

// Used returns the fuel used, given the value of the global fuel. If the limit
// was exceeded, the result is above the limit, by the last charge.
func (b *Budget) Used(fuel int64) int64 { return b.granted - fuel }

// Left returns the fuel left in the run.
func (b *Budget) Left(fuel int64) int64 { return max(0, b.Limit-b.Used(fuel)) }
