package abi

import (
	"context"
	"time"
)

// Host compiles modules. It knows creatures and turns, but no graph.
//
// All methods may be called from any goroutine.
type Host interface {
	// Compile checks and compiles a module. Equal bytes are compiled once and
	// shared. The errors name the function or limit concerned and the remedy.
	// It blocks for as long as the compilation takes.
	Compile(ctx context.Context, wasm []byte) (Module, error)
	// Close releases everything. All instances must have been closed.
	Close(ctx context.Context) error
}

// Module is a compiled module, shared by its instances.
//
// All methods may be called from any goroutine.
type Module interface {
	// Info describes the module. The value is shared: do not modify it.
	Info() *ModuleInfo
	// Instantiate makes an instance that holds to limits, and runs
	// _initialize and creature_init with init, which is read-only: its effects
	// answer [Denied]. Before creature_init the guest gets neither time nor
	// random bytes from it; and what runs before may be left out, when the host
	// has kept what it comes to. It blocks until they return or the deadline of
	// limits has passed. An error of creature_init has that name as its Op; others
	// come whatever the configuration is.
	Instantiate(ctx context.Context, limits *Limits, init Turn) (Instance, error)
	// Close gives up this reference; the code is released with the last one.
	Close(ctx context.Context) error
}

// Instance is one instance of a module.
//
// At most one method runs at a time; the caller sees to that.
type Instance interface {
	// Handle runs creature_handle for one delivery of size bytes. The guest's
	// hostcalls act on t, which is not used after Handle returns. A nil error
	// means that the guest answered 0 or more. The codes of the error:
	// [Trapped], [OutOfFuel], [Deadline], [LimitExceeded], or the code that the
	// guest itself answered. After an error the instance must be closed; it
	// must not be used again.
	Handle(ctx context.Context, t Turn, kind Kind, size int) error
	// Stop runs creature_stop, if the module has it, with t, which is
	// read-only.
	Stop(ctx context.Context, t Turn) error
	// MemoryBytes is the current size of the linear memory.
	MemoryBytes() int64
	// FuelUsed is what the last call used, or -1 when fuel is not counted.
	FuelUsed() int64
	// Close releases the instance. Calling it twice is harmless.
	Close(ctx context.Context) error
}

// Turn is what the hostcalls of one call into a guest act on. An engine
// implements it, a host calls it. Only the goroutine that runs the guest calls
// its methods.
//
// Slices passed in are views of guest memory: they are valid only until the
// method returns, so an implementation copies what it keeps. Slices passed out
// are valid until the next method call; a host copies them to the guest at
// once, and must not modify them.
//
// A method that answers a code other than [OK] leaves its text for LastError.
type Turn interface {
	// Source returns the content of a source, but for [SourceResult] and
	// [SourceError], which the host keeps.
	Source(s Source) ([]byte, Code)
	// HasFeature reports whether the engine has an optional feature.
	HasFeature(f Feature) bool
	// LastError returns the text of the last failed call.
	LastError() string

	Config(key []byte) ([]byte, Code)
	// Channel returns the handle of a send alias, or the negative status.
	Channel(alias []byte) int32
	// Send returns on how many channels it was sent, or the negative status.
	Send(channel int32, payload, headers []byte) int32
	SendTo(to, payload []byte) Code
	Request(to, payload []byte, deadline time.Duration, tag int64) Code
	Reply(payload []byte) Code
	Output(payload []byte) Code

	StateGet(key []byte) ([]byte, Code)
	StateSet(key, value []byte) Code
	StateDelete(key []byte) (existed bool, code Code)
	// StateList calls page with the keys that have the prefix, in byte order, each
	// followed by NUL: some hundred at a time, so that what a long list costs can be
	// counted and ended on the way. It keeps nothing locked meanwhile, and page may
	// panic.
	StateList(prefix []byte, page func(keys []byte)) Code

	TimerSet(name []byte, delay, period time.Duration, payload []byte) Code
	TimerCancel(name []byte) (existed bool, code Code)
	Tool(name, args []byte) ([]byte, Code)
	HTTP(request, body []byte, tag int64) Code

	Log(level Level, text []byte) Code
	// Now is the turn's time in nanoseconds since 1970.
	Now() int64
	// Random fills p.
	Random(p []byte)
}

// Import is one function that a module imports.
type Import struct {
	Module, Name string
}

// ModuleInfo is what can be known of a module without running it.
type ModuleInfo struct {
	SHA256      string    // of the bytes, lower-case hex
	Size        int64     // bytes
	Imports     []Import  // functions, in the module's order
	Exports     []string  // functions, sorted
	MemoryMin   int64     // bytes
	MemoryMax   int64     // bytes; 0 when the module declares none
	Manifest    *Manifest // nil when the module has none
	HasInit     bool
	HasStop     bool
	Initializer bool // exports _initialize
}
