package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/seed47132306/terrarium/abi"
)

// Instance is one instance of a module. At most one method runs at a time.
type Instance struct {
	compiled *compiled
	module   api.Module   // nil until wazero has instantiated it
	handle   api.Function // kept: every lookup makes a new stack
	call     call
	stack    [2]uint64 // arguments and results of the call
	broken   error     // why it must not run again; nil while it may
	closed   bool
}

var _ abi.Instance = (*Instance)(nil)

// start instantiates the module and runs its start functions, all of them under
// one deadline.
func (i *Instance) start(ctx context.Context, init abi.Turn) error {
	c := &i.call
	c.begin(init, phaseStart)
	if err := c.guard.begin(ctx, c.bounds.deadline); err != nil {
		c.turn = nil
		return interrupted("instantiate", err)
	}
	err := i.instantiate()
	if err == nil {
		err = i.initialize()
	}
	return i.finish(err)
}

func (i *Instance) instantiate() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &abi.Error{Code: abi.Internal, Op: "instantiate", Message: fmt.Sprintf("wazero failed: %v", r)}
		}
	}()
	ctx := experimental.WithMemoryAllocator(&i.call, &i.call.memory)
	i.module, err = i.compiled.host.runtime.InstantiateModule(ctx, i.compiled.code, i.compiled.host.instance)
	return err
}

func (i *Instance) initialize() error {
	if i.compiled.info.Initializer {
		i.call.phase = phaseInitialize
		if err := i.module.ExportedFunction(abi.ExportInitialize).CallWithStack(&i.call, i.stack[:]); err != nil {
			return err
		}
	}
	if i.compiled.info.HasInit {
		i.call.phase = phaseInit
		if err := i.module.ExportedFunction(abi.ExportInit).CallWithStack(&i.call, i.stack[:]); err != nil {
			return err
		}
		if status := int32(i.stack[0]); status < 0 {
			return guestFailure(status)
		}
	}
	i.handle = i.module.ExportedFunction(abi.ExportHandle)
	return nil
}

// Handle implements [abi.Instance].
func (i *Instance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	if err := i.usable(abi.ExportHandle, t); err != nil {
		return err
	}
	c := &i.call
	c.begin(t, phaseHandle)
	if err := c.guard.begin(ctx, c.bounds.deadline); err != nil {
		c.turn = nil // the guest has not run: the instance stays usable
		return interrupted(abi.ExportHandle, err)
	}
	i.stack[0], i.stack[1] = api.EncodeI32(int32(kind)), api.EncodeI32(int32(size))
	err := i.handle.CallWithStack(c, i.stack[:])
	if status := int32(i.stack[0]); err == nil && status < 0 {
		err = guestFailure(status)
	}
	return i.finish(err)
}

// Stop implements [abi.Instance].
func (i *Instance) Stop(ctx context.Context, t abi.Turn) error {
	if err := i.usable(abi.ExportStop, t); err != nil {
		return err
	}
	if !i.compiled.info.HasStop {
		return nil
	}
	c := &i.call
	c.begin(t, phaseStop)
	if err := c.guard.begin(ctx, c.bounds.deadline); err != nil {
		c.turn = nil
		return interrupted(abi.ExportStop, err)
	}
	return i.finish(i.module.ExportedFunction(abi.ExportStop).CallWithStack(c, i.stack[:]))
}

// finish ends the call that is going on, and breaks the instance if it failed.
func (i *Instance) finish(err error) error {
	c := &i.call
	cause := c.guard.end()
	c.flushOutput()
	if err != nil || cause != nil {
		i.broken = c.outcome(err, cause)
	}
	c.turn = nil
	return i.broken
}

func (i *Instance) usable(op string, t abi.Turn) error {
	switch {
	case i.closed:
		return &abi.Error{Code: abi.Stopped, Op: op, Message: "the instance is closed"}
	case i.broken != nil:
		return &abi.Error{Code: abi.Stopped, Op: op, Message: "the instance failed before and cannot be used again",
			Remedy: "close it and make another", Err: i.broken}
	case t == nil:
		return noTurn(op)
	}
	return nil
}

// MemoryBytes implements [abi.Instance].
func (i *Instance) MemoryBytes() int64 { return int64(len(i.call.memory.bytes)) }

// FuelUsed implements [abi.Instance]. Fuel is not counted, so it answers -1.
func (i *Instance) FuelUsed() int64 { return -1 }

// Close implements [abi.Instance].
func (i *Instance) Close(ctx context.Context) error {
	if i.closed {
		return nil
	}
	i.closed = true
	i.call.guard.close()
	var err error
	if i.module != nil {
		err = i.module.Close(ctx)
	}
	i.module, i.handle = nil, nil
	i.call.memory.Free()
	return errors.Join(err, i.compiled.release(ctx))
}
