// Package compilecost estimates what wazero's compiler will spend on a module, so
// that one which would take minutes or gigabytes is refused before it is compiled.
//
// A compilation cannot be given up: wazero looks at its context only between
// functions, and a function of three kilobytes can take seconds. Nor can plain
// caps on sizes bound it, for real functions are larger in every single one of
// them. What counts are products, which wazero 1.12 multiplies in these places:
//
//   - lookups: a local is looked up by walking from block to block, as long as
//     each has one predecessor; at a join, for every local that is live, along
//     every edge.
//   - joins: where edges meet, every live local may become a parameter that
//     each edge passes. Redundant ones are sought in rounds, each of which looks
//     at all arguments of an edge again for each parameter. A round may find no
//     more than the next level of loops or the next copy of a local.
//   - dominators: for each edge the blocks above it are walked, more than once.
//   - bounds: which addresses are known to be in memory is copied from block to
//     block.
//   - liveness: each block lists what is live in it.
//   - reloads: after each call all mutable globals are loaded again.
//   - operands: each argument and result of a call is moved by itself.
//   - targets: each target of a br_table is a block of its own.
//   - expansion: each instruction becomes some bytes while it is compiled, up to
//     36 kilobytes of them. prices.go has what was measured of every opcode.
//   - setup: each function goes over all types and globals of the module, and
//     over a table as long as the largest function before it has blocks.
//
// An estimate walks the code once, computes which locals are live, adds up upper
// bounds of these quantities, and weighs each with a time and a size that were
// measured. It is meant to be right within a small factor for the worst modules
// and is too high for usual ones, which stay far below the limits even so.
package compilecost
