// Package meter rewrites a WebAssembly module so that it counts its work:
// every instruction costs fuel, and the nesting of calls is bounded. A guest
// whose fuel is used up pauses in a function of the host.
//
//	bytes ─ wasmbin.Read ─ Validate ─ Instrument ─ Write ─ compile
//
// The cost of a run depends only on the module and its input: not on the
// engine, the machine, the clock or the size of the slices.
//
// # What the host provides
//
// An instrumented module imports one function, [ImportModule].[ImportPause] of
// type func(fuel, depth i64) (fuel i64), and exports mutable globals of type
// i64. Before each call into the guest the host sets
//
//   - [ExportFuel] to the fuel of the first slice,
//   - [ExportDepth] to the number of bytes that frames of nested calls may
//     take,
//   - [ExportTable], if [Meta].Tables is true, to the number of elements by
//     which tables may still grow. This counter covers the life of the
//     instance and is set once, before the first call.
//
// If [Meta].Start is true, the guest's start function has become the export
// [ExportStart]. The host calls it first, so that it runs under all limits.
// Until the three globals are set they are 0, and the first function that runs
// pauses.
//
// The pause function is called in two cases, which may coincide:
//
//   - depth is negative: calls nest too deeply. The host ends the guest. If
//     the function returns instead, the guest traps.
//   - fuel is negative: the slice is used up, and -fuel has been charged
//     beyond it. The host ends the guest, or returns the fuel with which the
//     guest continues.
//
// To end a guest the function panics; with wazero the call into the guest then
// returns an error that wraps the panic's value if that is an error. Like any
// instance that trapped, the instance must not be used again.
//
// [Budget] does the arithmetic of slices: Begin before the call, More in the
// pause function, Used at the end, both after success and after a trap. During
// a hostcall the global holds exactly the remaining fuel, so that a hostcall
// can report it, and can charge for its own work by lowering it. A hostcall
// may call into the guest again, without setting the globals.
//
// # How much is charged
//
// A unit is about one simple instruction; cost.go has the cost of the others.
// Wazero's compiled code takes 0.1 to 0.5 ns for a unit in ordinary code. Most
// instructions take at most a little over 1 ns, as long as memory is in the
// processor's caches. Code executed for the first time is worse, at 3.9 ns,
// and so are calculations with denormal numbers, at 6.8 ns: their cost depends
// on values that are unknown when the price is set, and pricing all
// floating-point instructions that way would charge programs several times
// their real cost. Reading at random from a large memory can take 20 ns for a
// unit. A slice of [Slice] units is thus about 10 µs and at most about 1 ms.
//
// Instructions whose work varies are charged by that work: bulk instructions
// by their bytes, growing by the amount added, calls and branches by the
// operands they carry, labels by the locals that a compiler has to merge
// there. Bulk instructions of more than 64 KiB run in chunks, with pauses
// between them if necessary. However long the code is, there are at most some
// twenty thousand units of work between two checks of the fuel.
//
// Fuel is charged at the start of a function, at the start of each loop
// iteration, and at a branch if one path needs more than has been paid:
//
//	loop            charge 14: all of the loop except the body of the if
//	  …
//	  if            charge 40: the body of the if
//	    …
//	  end
//	  …             paid at the start of the loop
//	  br_if 0
//	end
//
// The charge is never less than the work done. It may be more, by at most 16
// units at each branch: a path that costs only that much more than the
// cheapest is paid in advance instead of having its own charge. In compiled
// programs the sum is 1.0 to 1.35 times the exact cost.
//
// Functions of a few instructions that are reached only by call instructions
// are not metered; their callers pay for them.
//
// # How deep calls nest
//
// Each function that calls others takes an estimate of its frame from the
// depth, in bytes: mostly its locals and operands. Measured frames of compiled
// code take between an eighth and 1.6 times that estimate; crafted code can
// reach some 30 times. Which calls succeed does not depend on how the engine
// lays out its frames.
//
// # What the guest may not do
//
// Names that start with [Reserved] are refused, and so is an initial memory of
// 4 GiB; a guest cannot grow its memory to that size either.
package meter
