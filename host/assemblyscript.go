package host

import (
	"context"
	"encoding/binary"
	"unicode/utf16"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// abortSignature is (message, file, line, column), the former two as pointers
// to AssemblyScript strings.
var abortSignature = sig("iiii:")

// provideAssemblyScript makes the module env with the one function that
// AssemblyScript's runtime requires.
func provideAssemblyScript(ctx context.Context, r wazero.Runtime) (api.Closer, error) {
	b := r.NewHostModuleBuilder(envModule)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(abort), abortSignature.params, abortSignature.results).Export("abort")
	return b.Instantiate(ctx)
}

// abort ends the guest, as a trap with a message.
func abort(ctx context.Context, mod api.Module, stack []uint64) {
	c := callOf(ctx)
	defer c.contain()
	mem := mod.Memory()
	message := "the guest aborted"
	if text := asString(mem, uint32(stack[0])); text != "" {
		message += ": " + printable(text)
	}
	if file := asString(mem, uint32(stack[1])); file != "" {
		message += " (" + printable(file) + ":" + decimal(uint64(uint32(stack[2]))) + ":" + decimal(uint64(uint32(stack[3]))) + ")"
	}
	c.stop(&ending{&abi.Error{Code: abi.Trapped, Message: message}})
}

// asString reads a string of AssemblyScript: UTF-16 at ptr, its length in
// bytes in the four bytes before. It returns "" if there is none, and at most
// maxWords bytes.
func asString(mem api.Memory, ptr uint32) string {
	const header = 4
	if ptr < header {
		return ""
	}
	size, ok := mem.ReadUint32Le(ptr - header)
	if !ok {
		return ""
	}
	b, ok := mem.Read(ptr, min(size, maxWords)&^1)
	if !ok {
		return ""
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
