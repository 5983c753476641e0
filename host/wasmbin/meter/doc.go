// Package meter rewrites a WebAssembly module so that it counts what it does:
// every instruction is paid for with fuel, and calls can nest only so deep. A
// guest whose fuel is used up pauses in a function of the host.
//
//	bytes ─ wasmbin.Read ─ Validate ─ Instrument ─ Write ─ compile
//
// What a run costs depends on nothing but the module and its input: not on the
// engine, the machine, the clock or the size of the slices.
//
// # What the host provides
//
// An instrumented module imports one function, [ImportModule].[ImportPause] of
// type func(fuel, depth i64) (fuel i64), and exports mutable globals of type
// i64. Before each call into the guest the host sets
//
//   - [ExportFuel] to the fuel of the first slice,
//   - [ExportDepth] to the bytes that frames of nested calls may take,
//   - [ExportTable], where [Meta].Tables says that there is one, to the elements
//     by which tables may still grow. This one counts down over the life of the
//     instance and is set once, before the first call.
//
// The start function of the guest, if [Meta].Start says that there is one, is no
// longer one but the export [ExportStart], which the host calls first: it runs
// under all limits then. Until they are set all three are 0 and the first
// function that runs pauses.
//
// The pause function is called in two cases, which may coincide:
//
//   - depth is negative: calls nest too deep. The host ends the guest. If the
//     function returns instead, the guest traps.
//   - fuel is negative: the slice is used up, and -fuel has been charged beyond
//     it. The host ends the guest, or returns the fuel with which it goes on.
//
// To end a guest the function panics; with wazero the call into the guest then
// returns an error that wraps the panic's value if that is an error. Like any
// instance that trapped, the instance must not be used again.
//
// [Budget] does the arithmetic of slices: Begin before the call, More in the
// pause function, Used at the end, after success and after a trap alike. While
// the guest is in a hostcall the global has exactly what is left, so that a
// hostcall can tell it, and can charge for its own work by setting it lower. A
// hostcall may call into the guest again, without setting the globals.
//
// # How much is charged
//
// A unit is about one simple instruction; the constants of cost.go have the
// others. Wazero's compiled code takes 0.1 to 0.5 ns for a unit in ordinary
// code. Most instructions take at most a little over 1 ns, as long as memory is in
// the processor's caches. Worse are code that is executed for the first time, with
// 3.9 ns, and calculations with denormal numbers, with 6.8: what they cost depends
// on values that are not known when the price is set, and pricing all of floating
// point by them would charge programs several times of what they take. Reading at
// random from a large memory can take 20 ns for a unit. A slice of [Slice] units
// is thus about 10 µs and at most about 1 ms.
//
// Everything that takes longer than its instruction shows is charged by what it
// does: bulk instructions by their bytes, growing by what is added, calls and
// branches by the operands they carry, labels by the locals that a compiler has
// to bring together there. Bulk instructions of more than 64 KiB are done in
// chunks, with a pause between them if need be. Between two looks at the fuel
// there are at most some twenty thousand units of work, however long the code is.
//
// A charge is at the start of a function, of each turn of a loop, and where ways
// part and one of them needs more than has been paid:
//
//	loop            charge 14: all of the loop but what the if may do
//	  …
//	  if            charge 40: the body of the if
//	    …
//	  end
//	  …             paid at the start of the loop
//	  br_if 0
//	end
//
// What has been charged is never less than what has been done. It may be more,
// by at most 16 units where ways part: a way that is that little dearer than the
// cheapest is paid for in advance, instead of with a charge of its own. In
// programs as compilers make them the sum is 1.0 to 1.35 times the exact one.
//
// Functions of a few instructions that only call instructions refer to are not
// metered but paid for by their callers.
//
// # How deep calls nest
//
// Each function that calls others takes an estimate of its frame from the depth,
// in bytes: mostly its locals and operands. Frames of compiled code have been
// seen to take between an eighth and 1.6 times of that; code that is made for it
// can bring them to some 30 times. Which calls succeed does not depend on how the
// engine lays out its frames.
//
// # What the guest may not do
//
// Names that start with [Reserved] are refused, and so is a memory of 4 GiB from
// the start; a guest cannot grow one to it either.
package meter
