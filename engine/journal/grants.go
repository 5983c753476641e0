package journal

// Grants are the capabilities given to a creature. All are off by default.
type Grants struct {
	Clock  bool `json:"clock,omitempty"`  // now is the real time
	Random bool `json:"random,omitempty"` // random is not seeded
}
