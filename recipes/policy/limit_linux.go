package policy

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// reserve is address space that the runtime takes and does not use.
const reserve = 512 << 20

// limitAddressSpace has the kernel refuse more address space than there is now,
// and some. It is the second line of defence: the heap is watched.
func limitAddressSpace(limit int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	pages, _, _ := strings.Cut(string(text), " ")
	now, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return
	}
	most := uint64(now*int64(os.Getpagesize()) + 2*limit + reserve)
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}) // without it the heap is watched all the same
}
