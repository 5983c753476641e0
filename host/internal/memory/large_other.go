//go:build !linux || !(386 || arm || mips || mipsle)

package memory

import "math"

// largeBytes is more than any memory has: there are enough addresses, or no way to ask for
// them without the risk that the process ends.
const largeBytes = math.MaxUint64

func mapLarge(uint64) []byte { return nil }

func unmapLarge([]byte) {}
