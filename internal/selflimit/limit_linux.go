package selflimit

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// AddressSpace has the kernel refuse this process more than so many bytes of address
// space beyond what it has now.
func AddressSpace(more int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	pages, _, _ := strings.Cut(string(text), " ")
	now, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return
	}
	most := uint64(now*int64(os.Getpagesize()) + more)
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}) // see the package
}

// ProcessorTime has the kernel end this process after so many seconds of processor time.
func ProcessorTime(seconds int64) {
	cpu := uint64(seconds)
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: cpu, Max: cpu + 1}) // see the package
}
