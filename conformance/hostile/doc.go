// Package hostile holds modules that attack their host, and runs them against
// a live engine in which innocent creatures do their work.
//
// A hostile module may use up its own limits and nothing else: it ends with an
// error that names the limit, the messages of other creatures arrive
// meanwhile, the engine continues, and its memory is released.
//
// # Modules
//
// [Modules] is the gallery: for each module what it attacks, how it is built,
// and how it must end. Modules are written with a small assembler of the Wasm
// binary format (binary.go, instructions.go), because most of them are either
// too large for the text format or not valid at all. Their imports come from
// the tables of package abi, so they stay current.
//
//	refused.go     files that are not modules, lie about themselves or break the contract
//	oversized.go   small inputs that cost a compiler much
//	memory.go      memories and tables
//	runaway.go     guests that do not return
//	floods.go      too many hostcalls, and too much in them
//	amplifiers.go  few hostcalls that cost much, and turns that cause the next turn
//	arguments.go   hostcalls with arguments that do not make sense
//	scripts.go     scripts in JavaScript, which builtin:js runs
//
// # Running one
//
// A [Stage] is an engine with neighbours: a chain of builtin creatures that
// passes numbered messages on, and a victim beside which the hostile creature
// lives. [Stage.Run] adds the module, sends it one message if it starts, and
// returns a [Report] of how it ended and how it affected others.
// [Report.Problems] compares that with the required end.
package hostile
