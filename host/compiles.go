package host

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/tetratelabs/wazero"
)

// oneFunction is a module with one empty function.
var oneFunction = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b")

// engineOf returns what runs modules without a translation.
func engineOf(ctx context.Context, o Options) abi.Engine {
	if !o.Interpreter && Compiles(ctx) {
		return abi.EngineCompiler
	}
	return abi.EngineInterpreter
}

// Compiles reports whether modules are compiled to machine code on this machine. Where the
// processor has no compiler, or the system refuses executable memory, they are
// interpreted.
func Compiles(ctx context.Context) (can bool) {
	defer func() {
		if recover() != nil { // how wazero says that it has no compiler
			can = false
		}
	}()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	m, err := r.CompileModule(ctx, oneFunction)
	if err != nil {
		return false
	}
	return m.Close(ctx) == nil && r.Close(ctx) == nil
}
