package message

// SameMemory reports whether two slices begin or end at the same place, as parts of one array do that
// a caller uses for both.
func SameMemory(a, b []byte) bool {
	if cap(a) == 0 || cap(b) == 0 {
		return false
	}
	return &a[:1][0] == &b[:1][0] || &a[:cap(a)][cap(a)-1] == &b[:cap(b)][cap(b)-1]
}
