package hibernation

import (
	"bytes"
	"os"
	"strconv"
)

// private returns the bytes of the process that are in memory and belong to no file.
func private() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text) // pages: all, in memory, those of files
	if len(fields) < 3 {
		return 0
	}
	resident, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
