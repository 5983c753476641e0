// Package host runs creatures: it checks and compiles Wasm modules with
// wazero, makes instances of them and runs one turn at a time. It implements
// [abi.Host], [abi.Module] and [abi.Instance], and knows nothing about graphs.
//
// # From bytes to an instance
//
//	bytes ─ read ─ contract ─ validate ─ meter ─ estimate ─ compile ─┬─ instance
//	        bounded imports,   every       counts  what it     once,   ├─ instance
//	                exports    instruction fuel    will cost   shared  └─ …
//
// [Host.Compile] checks everything before wazero sees it: package wasmbin
// reads the module with bounds and validates it, the contract check reports
// everything that is wrong with the imports and exports at once, package meter
// rewrites the module so that it counts fuel and stack, and an estimate
// refuses modules that would keep the compiler busy for too long. Equal bytes
// are compiled once and shared by reference count; with a cache directory,
// between processes too.
//
// # One turn
//
//  1. The caller passes Handle an [abi.Turn], a kind and a size.
//  2. The instance's call state is pointed at that turn. The call state is the
//     context.Context that wazero passes to every hostcall, so a hostcall
//     finds its turn with one type assertion and no allocation.
//  3. The guest runs. Hostcalls translate: they turn pointers into
//     bounds-checked views of guest memory, call the turn, and return a length
//     or a negative code. A bad argument returns an error and never traps.
//  4. The outcome is classified: success, the guest's own failure code, a trap,
//     or a limit. After a failure the instance refuses to run again.
//
// # Decisions where the contract leaves a choice
//
//   - Pointers are unsigned, lengths and offsets are signed: a negative one is
//     invalid_argument. A range of length zero is never read, so its pointer
//     may be anything.
//
//   - All of a buffer of cap bytes must lie in memory, even if less is copied:
//     an error must not depend on the length of the data.
//
//   - Arguments are checked in their order, before the turn sees the call.
//
//   - The phase is checked before features: an effect outside creature_handle
//     is denied even if its feature is absent.
//
//   - A failed hostcall does not change the source result; a successful one
//     does not change the source error. Both start empty in every call.
//
//   - A source number outside the table is not_found; an awareness document
//     without that feature is unsupported.
//
//   - A negative time is invalid_argument; one beyond 292 years is clamped.
//
//   - The marker export must be a function; its type does not matter.
//
//   - Calls into the confined WASI count as hostcalls.
//
//   - A hostcall costs fuel: a fixed amount, and more for the bytes that it copies.
//     Most hostcalls are charged when they have finished. Calls of tools and requests
//     to capabilities are charged beforehand, and long lists of keys page by page.
//
// # Ending a guest
//
// The instrumented guest calls the host when its slice of fuel is used up, or when its
// calls nest too deeply. A slice takes about fifty microseconds. metering.go then
// decides: out of fuel, out of time, cancelled by the caller, or another slice. No
// operation of a guest, bulk instructions and hostcalls included, runs longer than a
// slice without calling the host, so the garbage collector and the end of the process
// wait no longer than that for a guest.
//
// # Memory
//
// Linear memory is a range of reserved addresses up to the limit, and the system provides
// the pages that are touched. It never moves. Platforms other than Linux on amd64 and arm64
// use the Go heap.
//
// # Handles
//
// Calling an instance needs a handle with its own stack, several times the
// size of a small creature. The handle is made when a turn begins without it,
// and dropped when the instance has had no turn for a second or two.
//
// # Images
//
// A guest in standard Go works for milliseconds before it can handle its first delivery,
// and does the same work in every instance. So if the start function and _initialize do
// much work, the first instance of a module is kept as an image when they have returned,
// and the other instances start from the image: their memory maps its pages
// copy-on-write, and their globals are set. An instance behaves the same with and without
// an image. image.go says why, and when there is no image.
package host
