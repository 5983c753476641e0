package journal

// Grants are the capabilities given to a creature. All are off by default.
type Grants struct {
	Clock  bool `json:"clock,omitempty"`  // whether now returns the real time
	Random bool `json:"random,omitempty"` // whether random returns real random bytes, without a seed
}
