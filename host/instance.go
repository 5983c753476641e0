package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
	"github.com/tetratelabs/wazero/api"
)

// Instance is one instance of a module. At most one method runs at a time.
type Instance struct {
	compiled *compiled
	guest    guest // nil until the engine has instantiated it
	handle   handle
	call     call
	stack    [2]uint64 // arguments and results of the call
	broken   error     // why the instance must not run again; nil while it may
	closed   bool
}

var _ abi.Instance = (*Instance)(nil)

// startDeadlines is how many times the deadline an instance may take to start.
// An interpreter or a garbage-collected runtime needs much of a second for it
// on a small or busy machine. It happens once for a module, as later instances
// begin with an image, and the fuel of a call bounds it in any case.
const startDeadlines = 10

// start instantiates the module and runs its start functions, all of them
// with the fuel of one call and startDeadlines times its deadline.
func (i *Instance) start(ctx context.Context, init abi.Turn) error {
	c := &i.call
	c.begin(init, phaseInstantiate)
	if err := ctx.Err(); err != nil {
		c.turn = nil
		return interrupted("instantiate", err)
	}
	image := i.compiled.images.fitting(&c.bounds)
	if image != nil && !c.memory.Show(image.memory) {
		image = nil
	}
	err := i.instantiate()
	if err == nil {
		c.bind(i.guest, &c.bounds)
		c.meteredCall.begin(ctx, &c.bounds)
		if image != nil {
			i.resume(image)
		} else if err = i.initialize(); err == nil {
			i.compiled.images.keep(i)
		}
	}
	if err == nil {
		err = i.init()
	}
	return i.finish(err)
}

// instantiate makes the instance. No guest code runs: its start function has
// become an export.
func (i *Instance) instantiate() (err error) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case i.call.memory.NoRoom: // wazero panics
			err = noMemory()
		default:
			err = &abi.Error{Code: abi.Internal, Op: "instantiate", Message: fmt.Sprintf("the engine failed: %v", r)}
		}
	}()
	if outside := i.compiled.static.outside; outside != "" {
		return errors.New(outside)
	}
	i.guest, err = i.compiled.newGuest(&i.call)
	return err
}

func noMemory() error {
	return &abi.Error{Code: abi.Unavailable, Op: "instantiate", Message: "the system has no memory for the instance", Remedy: "free some memory, or use a module that starts with less"}
}

// initialize runs the part of the start that is the same for all instances of
// the module.
func (i *Instance) initialize() error {
	c := i.compiled
	c.static.apply(i.call.memory.Bytes)
	if !c.runsFirst() {
		return nil
	}
	i.call.early = rand.NewChaCha8(c.sum)
	defer func() { i.call.early = nil }()
	if c.meta.Start {
		if err := i.run(phaseStart, meter.ExportStart); err != nil {
			return err
		}
	}
	if c.info.Initializer {
		return i.run(phaseInitialize, abi.ExportInitialize)
	}
	return nil
}

// init runs creature_init.
func (i *Instance) init() error {
	i.call.phase = phaseInit
	if i.compiled.info.HasInit {
		if err := i.run(phaseInit, abi.ExportInit); err != nil {
			return err
		}
		if status := int32(i.stack[0]); status < 0 {
			return guestFailure(status)
		}
	}
	return nil
}

// run calls a function without parameters.
func (i *Instance) run(p phase, name string) error {
	i.call.phase = p
	i.call.depth.Set(uint64(i.call.bounds.depth))
	return i.guest.function(name).CallWithStack(&i.call, i.stack[:])
}

// Handle implements [abi.Instance].
func (i *Instance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	if err := i.ready(ctx, abi.ExportHandle, t); err != nil {
		return err
	}
	c := &i.call
	c.begin(t, phaseHandle)
	c.meteredCall.begin(ctx, &c.bounds)
	i.stack[0], i.stack[1] = api.EncodeI32(int32(kind)), api.EncodeI32(int32(size))
	err := i.compiled.host.handles.handleOf(i, kind).CallWithStack(c, i.stack[:])
	if status := int32(i.stack[0]); err == nil && status < 0 {
		err = guestFailure(status)
	}
	return i.finish(err)
}

// Stop implements [abi.Instance].
func (i *Instance) Stop(ctx context.Context, t abi.Turn) error {
	if err := i.ready(ctx, abi.ExportStop, t); err != nil {
		return err
	}
	if !i.compiled.info.HasStop {
		return nil
	}
	c := &i.call
	c.begin(t, phaseStop)
	c.meteredCall.begin(ctx, &c.bounds)
	return i.finish(i.guest.function(abi.ExportStop).CallWithStack(c, i.stack[:]))
}

// finish ends the running call, and marks the instance as broken if the call
// failed.
func (i *Instance) finish(err error) error {
	c := &i.call
	c.flushOutput()
	if c.overspent() {
		c.end = c.outOfFuel()
		err = c.end
	}
	if err != nil {
		e := i.outcome(err)
		if e.Code == abi.Trapped && e.Remedy == "" && i.compiled.isProgram() {
			e.Remedy = "the module exports _start and not _initialize: build a reactor (clang: -mexec-model=reactor, Go: -buildmode=c-shared), whose runtime is set up before the first call"
		}
		i.broken = e
	}
	if cap(c.result) > keepResult {
		c.result = nil
	}
	c.turn, c.caller = nil, nil
	return i.broken
}

// ready returns why a call cannot begin. The instance stays usable if only its
// caller's context has ended.
func (i *Instance) ready(ctx context.Context, op string, t abi.Turn) error {
	if err := i.usable(op, t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return interrupted(op, err)
	}
	return nil
}

func (i *Instance) usable(op string, t abi.Turn) error {
	switch {
	case i.closed:
		return &abi.Error{Code: abi.Stopped, Op: op, Message: "the instance is closed"}
	case i.broken != nil:
		return &abi.Error{Code: abi.Stopped, Op: op, Message: "the instance has failed and cannot be used again",
			Remedy: "close it and make another", Err: i.broken}
	case t == nil:
		return noTurn(op)
	}
	return nil
}

// MemoryBytes implements [abi.Instance].
func (i *Instance) MemoryBytes() int64 { return int64(len(i.call.memory.Bytes)) }

// FuelUsed implements [abi.Instance].
func (i *Instance) FuelUsed() int64 { return i.call.used() }

// Close implements [abi.Instance].
func (i *Instance) Close(ctx context.Context) error {
	if i.closed {
		return nil
	}
	i.closed = true
	var err error
	if i.guest != nil {
		err = i.guest.close(ctx)
	}
	i.compiled.host.handles.drop(i)
	i.guest = nil
	i.call.memory.Release()
	return errors.Join(err, i.compiled.release(ctx))
}
