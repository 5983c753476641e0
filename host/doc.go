// Package host runs creatures: it checks and compiles Wasm modules with
// wazero, makes instances of them and runs one turn at a time. It satisfies
// [abi.Host], [abi.Module] and [abi.Instance], and knows no graph.
//
// # From bytes to an instance
//
//	bytes ─ scan ─ contract ─ cap tables ─ compile ─┬─ instance
//	        sections  imports,    bound      once,   ├─ instance
//	        consistent exports    growth     shared  └─ …
//
// [Host.Compile] looks at a module itself before wazero does: scan reads the
// section structure with bounds (and is the seam for a full validator), the
// contract check reports everything that is wrong with the imports and exports
// at once. Equal bytes are compiled once and shared by reference count.
//
// # One turn
//
//  1. The caller hands Handle a [abi.Turn], a kind and a size.
//  2. The instance's call state is pointed at that turn. The call state is the
//     context.Context that wazero passes to every hostcall, so a hostcall finds
//     its turn with one type assertion and nothing is allocated.
//  3. The guest runs. Hostcalls translate: they turn pointers into bounds-checked
//     views of guest memory, call the turn, and answer a length or a negative
//     code. A bad argument is an answer, never a trap.
//  4. The outcome is classified: success, the guest's own failure code, a trap,
//     or a limit. After a failure the instance refuses to run again.
//
// # Decisions where the contract leaves room
//
//   - Pointers are unsigned, lengths and offsets are signed: a negative one is
//     invalid_argument. A range of length zero is never looked at, so its
//     pointer may be anything.
//   - A buffer of cap bytes must lie in memory as a whole, even if less is
//     copied: an error must not depend on the length of the data.
//   - Arguments are checked before the turn sees the call, in their order.
//   - The phase is checked before features: an effect outside of
//     creature_handle is denied even when its feature is absent.
//   - A failed hostcall leaves the source result as it was; a successful one
//     leaves the source error as it was. Both start empty in every call.
//   - A source number outside the table is not_found; an awareness document
//     without that feature is unsupported.
//   - A negative time is invalid_argument; one beyond 292 years is clamped.
//   - The marker export has to be a function; its type does not matter.
//   - Calls into the confined WASI count as hostcalls.
//
// # Ending a guest
//
// deadline.go holds the seam: a guard that ends the call of one instance.
// Today it closes the instance through wazero's close-on-context-done, which
// polls at loop heads and costs a goroutine a call. Fuel will be spent inside
// the guest instead, and the guard then only has to catch what fuel cannot.
// What the guard cannot end yet is a tree of calls without a loop, however long
// it takes, and a single long bulk-memory instruction. Deep recursion ends when
// the stack reaches wazero's ceiling of some hundred megabytes.
package host
