package deploy

// Workers is what happens to a creature's workers when it is removed. A worker of a
// creature is a child that no recipe declares and that is not privileged.
type Workers uint8

// What happens to workers.
const (
	WorkersKeep   Workers = iota // they stay, without a parent
	WorkersRemove                // they are removed in the same change, and so are their own workers
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
