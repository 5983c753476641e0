package abi

import (
	"context"
	"time"
)

// Host compiles modules. It knows creatures and turns, but no graphs.
//
// All methods may be called from any goroutine.
type Host interface {
	// Compile checks and compiles a module. Equal bytes are compiled once and
	// shared. Errors name the function or limit concerned and the remedy.
	// Compile blocks until the compilation ends.
	Compile(ctx context.Context, wasm []byte) (Module, error)
	// Close releases all resources. All instances must have been closed.
	Close(ctx context.Context) error
}

// Module is a compiled module, shared by its instances.
//
// All methods may be called from any goroutine.
type Module interface {
	// Info describes the module. The value is shared; callers must not modify
	// it.
	Info() *ModuleInfo
	// Instantiate makes an instance bound by limits, and runs _initialize and
	// creature_init with init, which is read-only: its effects return
	// [Denied]. Before creature_init the guest gets neither time nor random
	// bytes from init; the host may skip that code if it has kept its outcome.
	// Instantiate blocks until both return or the deadline of limits has
	// passed. An error of creature_init has that name as its Op; other errors
	// do not depend on the configuration.
	Instantiate(ctx context.Context, limits *Limits, init Turn) (Instance, error)
	// Close releases this reference; the code is released with the last one.
	Close(ctx context.Context) error
}

// Instance is one instance of a module.
//
// The caller must ensure that at most one method runs at a time.
type Instance interface {
	// Handle runs creature_handle for one delivery of size bytes. The guest's
	// hostcalls act on t, which is not used after Handle returns. A nil error
	// means that the guest returned 0 or more. The error has the code
	// [Trapped], [OutOfFuel], [Deadline], [LimitExceeded], or the one that the
	// guest itself returned. After an error the caller must close the instance
	// and not use it again. When ctx ends, Handle returns soon, with an error:
	// a caller may wait for that, and the engine runs the turn again.
	Handle(ctx context.Context, t Turn, kind Kind, size int) error
	// Stop runs creature_stop, if the module has it, with t, which is
	// read-only.
	Stop(ctx context.Context, t Turn) error
	// MemoryBytes returns the current size of the linear memory in bytes.
	MemoryBytes() int64
	// FuelUsed returns the fuel that the last call used, or -1 if fuel is not
	// counted.
	FuelUsed() int64
	// Close releases the instance. Calling it twice is harmless.
	Close(ctx context.Context) error
}

// Turn is the target of the hostcalls of one call into a guest. An engine
// implements it, a host calls it. Only the goroutine that runs the guest calls
// its methods.
//
// Slices passed in are views of guest memory, valid only until the method
// returns: an implementation copies what it keeps. Returned slices are valid
// until the next method call; a host copies them to the guest at once, and
// must not modify them.
//
// A method that returns a code other than [OK] leaves its text for LastError.
type Turn interface {
	// Source returns the content of a source, except for [SourceResult],
	// [SourceError] and [SourceFailure], which the host keeps.
	Source(s Source) ([]byte, Code)
	// HasFeature reports whether the engine has an optional feature.
	HasFeature(f Feature) bool
	// LastError returns the text of the last failed call.
	LastError() string

	Config(key []byte) ([]byte, Code)
	// Channel returns the handle of a send alias, or the negative status.
	Channel(alias []byte) int32
	// Send returns the number of channels it was sent on, or the negative
	// status.
	Send(channel int32, payload, headers []byte) int32
	SendTo(to, payload []byte) Code
	Request(to, payload []byte, deadline time.Duration, tag int64) Code
	Reply(payload []byte) Code
	Output(payload []byte) Code

	StateGet(key []byte) ([]byte, Code)
	StateSet(key, value []byte) Code
	StateDelete(key []byte) (existed bool, code Code)
	// StateList calls page with the keys that have the prefix, in byte order,
	// each followed by NUL: some hundred at a time, so that the host can count
	// the cost of a long list and stop it on the way. No lock is taken while
	// page runs, and page may panic.
	StateList(prefix []byte, page func(keys []byte)) Code

	TimerSet(name []byte, delay, period time.Duration, payload []byte) Code
	TimerCancel(name []byte) (existed bool, code Code)
	Tool(name, args []byte) ([]byte, Code)
	HTTP(request, body []byte, tag int64) Code

	Log(level Level, text []byte) Code
	// Now returns the turn's time in nanoseconds since 1970.
	Now() int64
	// Random fills p.
	Random(p []byte)
}

// Import is one function that a module imports.
type Import struct {
	Module, Name string
}

// ModuleInfo describes a module, as far as possible without running it.
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
	Engine      Engine
}

// Engine says what runs the code of a compiled module; it is empty if the host does not say.
// It makes no difference to the guest, only to its speed. It is stable.
type Engine string

// The engines.
const (
	EngineCompiler    Engine = "compiler"    // machine code, made when the module was loaded
	EngineInterpreter Engine = "interpreter" // the instructions of the module one by one
	EngineTranslation Engine = "translation" // Go code, made when the program was built
)
