package wasmgen

// source returns the decisions. At its end it returns zero forever, and zero
// always means the choice that adds least.
type source struct {
	data []byte
}

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// below picks a number from 0 to n-1.
func (s *source) below(n int) int {
	v := int(s.next())
	if n > 256 {
		v |= int(s.next()) << 8
	}
	return v % n
}

// oneIn is true for one byte in n, and never at the end of the string.
func (s *source) oneIn(n int) bool {
	return int(s.next())%n == n-1
}

// bits reads up to n bytes, little endian.
func (s *source) bits(n int) uint64 {
	var v uint64
	for i := range n {
		v |= uint64(s.next()) << (8 * i)
	}
	return v
}

func (s *source) left() int {
	return len(s.data)
}

// pick chooses one of a list that is not empty.
func pick[T any](s *source, list []T) T {
	return list[s.below(len(list))]
}
