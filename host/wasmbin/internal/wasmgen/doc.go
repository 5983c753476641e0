// Package wasmgen turns any byte string into a valid WebAssembly 2.0 module,
// for fuzzing whatever reads, rewrites or runs modules.
//
// Every byte is a decision, so a mutation of the string is a small change of
// the module, and a string that ends early closes what is open. The modules
// use all instructions of the standard, dead code included, and trap now and
// then; most operands are brought into range first, or nothing but the first
// trap would ever be seen.
//
// Two runs of a module can be compared bit by bit: wherever the standard
// leaves the bits of a NaN open, the code makes the NaN canonical. What a
// module cannot show through its exports, such as a vector in a global or the
// entries of a table, its export [Observe] returns.
package wasmgen
