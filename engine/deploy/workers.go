package deploy

// Workers is what becomes of a creature's workers when it is removed. A worker is
// a creature that it is the parent of, that no recipe declares and that is not
// privileged.
type Workers uint8

// What becomes of workers.
const (
	WorkersKeep   Workers = iota // they stay, without a parent
	WorkersRemove                // they go in the same change, and so do theirs
)

// String returns "keep" or "remove".
func (w Workers) String() string {
	return [...]string{"keep", "remove"}[w]
}

// ParseWorkers reads what [Workers.String] writes.
func ParseWorkers(s string) (Workers, bool) {
	for w := WorkersKeep; w <= WorkersRemove; w++ {
		if w.String() == s {
			return w, true
		}
	}
	return 0, false
}
