package host

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/seed47132306/terrarium/abi"
)

// envFunctions returns the one function that AssemblyScript's runtime requires. Its
// parameters are message, file, line and column, the former two as pointers to
// AssemblyScript strings.
func envFunctions() map[string]importable {
	return map[string]importable{"abort": {sig("iiii:"), abort}}
}

// abort ends the guest, as a trap with a message.
func abort(c *call, stack []uint64) {
	defer c.contain()
	message := "the guest aborted"
	if text := c.asString(uint32(stack[0])); text != "" {
		message += ": " + printable(text)
	}
	if file := c.asString(uint32(stack[1])); file != "" {
		message += " (" + printable(file) + ":" + decimal(uint64(uint32(stack[2]))) + ":" + decimal(uint64(uint32(stack[3]))) + ")"
	}
	c.stop(&ending{&abi.Error{Code: abi.Trapped, Message: message}})
}

// asString reads a string of AssemblyScript: UTF-16 at ptr, its length in
// bytes in the four bytes before. It returns "" if there is none, and at most
// maxWords bytes.
func (c *call) asString(ptr uint32) string {
	const header = 4
	if ptr < header {
		return ""
	}
	size, ok := c.memory.ReadUint32Le(ptr - header)
	if !ok {
		return ""
	}
	b, ok := c.memory.Read(ptr, min(size, maxWords)&^1)
	if !ok {
		return ""
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
