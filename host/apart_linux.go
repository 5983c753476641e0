package host

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitProcess has the kernel end this process when it takes more memory than it
// has now and some, or more processor time. The garbage collector keeps to less
// memory by itself.
func limitProcess(memory, seconds int64) {
	cpu := uint64(seconds)
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: cpu, Max: cpu + 1}) // without it the other process kills this one later
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	pages, _, _ := strings.Cut(string(text), " ")
	now, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return
	}
	most := uint64(now*int64(os.Getpagesize()) + memory)
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}) // without it the garbage collector keeps to it alone
}
