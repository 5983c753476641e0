//go:build !linux

package selflimit

// AddressSpace does nothing.
func AddressSpace(int64) {}

// ProcessorTime does nothing.
func ProcessorTime(int64) {}
