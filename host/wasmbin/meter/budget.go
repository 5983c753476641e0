package meter

// Budget is the fuel of one run of a guest. It is handed out in slices, so that
// the host gets to look around now and then, and what it counts does not depend
// on how large they are.
//
// A Budget is not safe for concurrent use; the guest and its host take turns.
type Budget struct {
	Limit int64 // fuel of the whole run
	Slice int64 // fuel between two pauses; 0 or less means that there are none

	granted int64
}

// Begin starts a run and returns what the global fuel must be set to.
func (b *Budget) Begin() int64 {
	b.granted = b.Limit
	if b.Slice > 0 {
		b.granted = min(b.Slice, b.Limit)
	}
	return b.granted
}

// More returns the fuel with which a guest goes on that paused with a negative
// one. It returns false when the limit is exceeded.
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

// Used is the fuel that was used, given what the global fuel has. After the limit
// was exceeded it is more than the limit, by what was charged at once.
func (b *Budget) Used(fuel int64) int64 { return b.granted - fuel }

// Left is the fuel that is left of the whole run.
func (b *Budget) Left(fuel int64) int64 { return max(0, b.Limit-b.Used(fuel)) }
