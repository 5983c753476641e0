package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/internal/compilecost"
	"github.com/seed47132306/terrarium/host/internal/lines"
	"github.com/seed47132306/terrarium/host/wasmbin/meter"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// compiled is the code of one module, shared by every Module and Instance made
// from the same bytes.
type compiled struct {
	host *Host
	sum  [sha256.Size]byte
	refs int // guarded by host.mu; the entry leaves host.modules with the last one

	waiting       int                // callers whose context had not ended while it was compiled; guarded by host.mu
	stopCompiling context.CancelFunc // ends compiling

	ready   chan struct{} // closed once; the fields below do not change afterwards
	err     error
	code    wazero.CompiledModule
	runtime wazero.Runtime // the runtime that holds code
	// translated runs in place of code, which is then nil.
	translated *translated
	info       *abi.ModuleInfo
	meta       *meter.Meta
	table      int64 // initial elements of all tables

	static static
	images imageSlot
	places places
}

// weighedTwice is the size in bytes above which a module's cost is also
// estimated before metering.
const weighedTwice = 4 << 20

func (c *compiled) compile(ctx context.Context, wasm []byte) error {
	m, s, infos, err := c.host.check("compile", wasm)
	if err != nil {
		return err
	}
	c.info, c.table = s.info(c.sum, int64(len(wasm))), s.tableElements()
	c.static = takeStatic(m)
	c.keepOriginal(m, wasm)
	limits := compilecost.Limits{Time: c.host.opts.CompileTime, Bytes: c.host.opts.CompileBytes}
	if len(wasm) > weighedTwice { // metering such a module takes seconds and makes it larger
		if _, err := compilecost.Estimate(m, infos, limits); err != nil {
			return withOp("compile", err)
		}
	}
	if c.meta, err = meter.Instrument(m, infos); err != nil {
		var e *abi.Error
		if errors.As(err, &e) {
			e.Op = "compile"
		}
		return err
	}
	c.static.exportGlobals(m)
	c.images.never = c.runsFirst() && !c.static.captured
	if m.Customs = nil; c.places.file != "" { // nothing reads the others
		m.Customs = lines.Marks()
	}
	cost, err := compilecost.Estimate(m, infos, limits)
	if err != nil {
		return withOp("compile", err)
	}
	metered := m.Write()
	if c.translated = c.host.translate(m, c.info, metered); c.translated != nil {
		c.info.Engine = abi.EngineTranslation
		return nil
	}
	c.info.Engine = c.host.engine
	c.code, c.runtime, err = c.host.compileCached(ctx, metered, cost)
	return err
}

// runsFirst reports whether guest code runs before creature_init.
func (c *compiled) runsFirst() bool { return c.meta.Start || c.info.Initializer }

// isProgram reports whether the module was built as a program to start once,
// rather than as a reactor.
func (c *compiled) isProgram() bool {
	return !c.info.Initializer && slices.Contains(c.info.Exports, "_start")
}

// retain adds a reference. It returns false if the last one has been released.
func (c *compiled) retain() bool {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.refs == 0 || c.host.closed {
		return false
	}
	c.refs++
	return true
}

// leave records that a caller no longer waits. When the last one leaves, the
// compilation stops; a later caller starts a new one.
func (c *compiled) leave() {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	select {
	case <-c.ready:
		return
	default:
	}
	if c.waiting--; c.waiting == 0 {
		c.host.modules.forget(c)
		c.stopCompiling()
	}
}

// table has the modules of a host by the hashes of their bytes.
type table map[[sha256.Size]byte]*compiled

// forget removes an entry, unless another one has taken its place.
func (t table) forget(c *compiled) {
	if t[c.sum] == c {
		delete(t, c.sum)
	}
}

func (c *compiled) release(ctx context.Context) error {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.refs--
	if c.refs > 0 {
		return nil
	}
	c.host.modules.forget(c)
	c.images.close()
	c.dropOriginal()
	if c.code == nil {
		return nil
	}
	return c.code.Close(ctx)
}

// Module is one reference to compiled code. All methods may be called from any
// goroutine.
type Module struct {
	compiled *compiled
	closed   atomic.Bool
}

var _ abi.Module = (*Module)(nil)

// Info implements [abi.Module].
func (m *Module) Info() *abi.ModuleInfo { return m.compiled.info }

// Close implements [abi.Module]. Instances keep the code they run, so they may
// outlive it. Calling it twice is harmless.
func (m *Module) Close(ctx context.Context) error {
	if !m.closed.CompareAndSwap(false, true) {
		return nil
	}
	return m.compiled.release(ctx)
}

// Instantiate implements [abi.Module]. Zero fields of limits, and nil, mean the
// defaults.
func (m *Module) Instantiate(ctx context.Context, limits *abi.Limits, init abi.Turn) (abi.Instance, error) {
	const op = "instantiate"
	if init == nil {
		return nil, noTurn(op)
	}
	b := boundsOf(limits)
	if err := m.compiled.fits(b); err != nil {
		return nil, err
	}
	if m.closed.Load() || !m.compiled.retain() {
		return nil, &abi.Error{Code: abi.Stopped, Op: op, Message: "the module or its host is closed"}
	}
	i := &Instance{compiled: m.compiled}
	b.tableGrowth, b.depth = b.table-m.compiled.table, b.stack
	if m.compiled.translated != nil {
		b.depth = min(b.depth, deepest)
	}
	i.call.bounds = b
	i.call.memory.Limit, i.call.memory.Pool = uint64(b.memory), m.compiled.host.memories
	if err := i.start(ctx, init); err != nil {
		_ = i.Close(context.WithoutCancel(ctx)) // the first error is the one to report
		return nil, err
	}
	return i, nil
}

// bounds holds the limits that the host itself enforces; the turn enforces the
// others.
type bounds struct {
	memory      int64 // bytes
	table       int64 // elements
	tableGrowth int64 // elements by which tables may grow
	calls       int64 // per call into the guest
	fuel        int64 // per call into the guest
	stack       int64 // bytes
	depth       int64 // bytes of stack that the engine has room for, at most stack
	deadline    time.Duration
}

func boundsOf(l *abi.Limits) bounds {
	if l == nil {
		l = &abi.DefaultLimits
	}
	return bounds{
		memory:   orDefault(l.Memory, abi.DefaultLimits.Memory),
		table:    orDefault(l.Table, abi.DefaultLimits.Table),
		calls:    orDefault(l.Calls, abi.DefaultLimits.Calls),
		fuel:     orDefault(l.Fuel, abi.DefaultLimits.Fuel),
		stack:    orDefault(l.Stack, abi.DefaultLimits.Stack),
		deadline: orDefault(l.Deadline, abi.DefaultLimits.Deadline),
	}
}

func orDefault[T ~int64](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// fits checks the module's initial memory and tables. wazero would panic on a
// memory that the allocator refuses.
func (c *compiled) fits(b bounds) error {
	if c.info.MemoryMin > b.memory {
		return limitError("instantiate", "memory",
			fmt.Sprintf("the module starts with %d bytes of memory; the limit memory is %d", c.info.MemoryMin, b.memory),
			"raise the limit memory, or link the module with a smaller stack and less static data")
	}
	if c.table > b.table {
		return limitError("instantiate", "table",
			fmt.Sprintf("the module's tables start with %d elements; the limit table is %d", c.table, b.table),
			"raise the limit table")
	}
	return nil
}

// limitError returns the error for a limit that was reached.
func limitError(op, limit, message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.LimitExceeded, Op: op, Message: message, Remedy: remedy, IDs: map[string]string{"limit": limit}}
}

func noTurn(op string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: op, Message: "there is no turn to act on", Remedy: "pass a Turn that is not nil"}
}

// instanceConfig is shared by all instances. Guests cannot reach wazero's
// clock and random source, because the confined WASI replaces them; setting
// them only prevents wazero from making new ones for every instance.
func instanceConfig() wazero.ModuleConfig {
	return wazero.NewModuleConfig().
		WithName(""). // anonymous: wazero registers no name, and many instances can exist
		WithStartFunctions().
		WithRandSource(zeroes{}).
		WithWalltime(func() (int64, int32) { return 0, 0 }, sys.ClockResolution(time.Microsecond)).
		WithNanotime(func() int64 { return 0 }, sys.ClockResolution(time.Microsecond))
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
