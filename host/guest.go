package host

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A guest is an instance of a module in the engine that runs its code: wazero, or a
// translation to Go.
type guest interface {
	// function returns an exported function.
	function(name string) function
	// counter returns an exported mutable global, or nil.
	counter(name string) counter
	close(context.Context) error
}

// A function takes its arguments from the stack and leaves its result there. An error is a
// trap, with the stack of the guest in its text.
type function interface {
	CallWithStack(ctx context.Context, stack []uint64) error
}

// A counter is a global as a 64-bit value.
type counter interface {
	Get() uint64
	Set(uint64)
}

// wazeroGuest is an instance that wazero compiles or interprets.
type wazeroGuest struct{ module api.Module }

func (g wazeroGuest) function(name string) function { return g.module.ExportedFunction(name) }

func (g wazeroGuest) counter(name string) counter {
	if global, ok := g.module.ExportedGlobal(name).(api.MutableGlobal); ok {
		return global
	}
	return nil
}

func (g wazeroGuest) close(ctx context.Context) error { return g.module.Close(ctx) }

// newGuest makes an instance with the engine of the module.
func (c *compiled) newGuest(of *call) (guest, error) {
	if c.translated != nil {
		return c.translated.instantiate(of)
	}
	ctx := experimental.WithMemoryAllocator(of, &of.memory)
	module, err := c.runtime.InstantiateModule(ctx, c.code, c.host.instance)
	if err != nil {
		return nil, err
	}
	return wazeroGuest{module}, nil
}
