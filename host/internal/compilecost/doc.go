// Package compilecost estimates what compiling a module with wazero will cost,
// so that a module that would take minutes or gigabytes is refused before it
// is compiled.
//
// A compilation cannot be cancelled: wazero checks its context only between
// functions, and a function of three kilobytes can take seconds. Caps on
// single sizes do not bound it either, because real functions exceed every
// such cap. The cost comes from products, which arise in wazero 1.12 in these
// places:
//
//   - lookups: a local is looked up by walking from block to block, as long as
//     each has one predecessor; at a join, for every live local along every
//     edge.
//   - joins: where edges meet, every live local may become a parameter that
//     each edge passes. Redundant parameters are removed in rounds, each of
//     which reads all arguments of an edge again for each parameter. A round
//     may find only the next level of loops or the next copy of a local.
//   - dominators: for each edge the blocks above it are walked, more than once.
//   - bounds: the set of addresses known to be in memory is copied from block
//     to block.
//   - liveness: each block lists the values live in it.
//   - reloads: after each call all mutable globals are loaded again.
//   - operands: each argument and result of a call is moved separately.
//   - targets: each target of a br_table is a separate block.
//   - expansion: each instruction takes some bytes while it is compiled, up to
//     36 kilobytes. prices.go has the measured figures of every opcode.
//   - setup: each function iterates over all types and globals of the module,
//     and over a table with an entry for each block of the largest function
//     before it.
//
// An estimate walks the code once, computes which locals are live, adds up
// upper bounds of these quantities, and weighs each with a measured time and
// size. It is meant to be right within a small factor for the worst modules.
// For ordinary modules it is too high, but they stay far below the limits even
// so.
package compilecost
