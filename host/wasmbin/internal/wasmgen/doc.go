// Package wasmgen turns any byte string into a valid WebAssembly 2.0 module,
// for fuzzing code that reads, rewrites or runs modules.
//
// Every byte is a decision, so a mutation of the string is a small change of
// the module, and a string that ends early closes all open blocks. The modules
// use all instructions of the standard, dead code included, and trap
// sometimes; most operands are brought into range first, because otherwise
// runs would end at the first trap.
//
// Two runs of a module can be compared bit by bit: wherever the standard
// leaves the bits of a NaN open, the code makes the NaN canonical. The export
// [Observe] returns state that other exports cannot show, such as a vector in
// a global or the entries of a table.
package wasmgen
