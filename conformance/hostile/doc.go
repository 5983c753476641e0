// Package hostile holds modules that attack their host, and runs them against a
// live engine in which innocent creatures go about their business.
//
// A hostile module may cost its own limits and nothing else: it ends with an
// error that names what stopped it, the others' messages arrive meanwhile, the
// engine goes on, and its memory comes back.
//
// # Modules
//
// [Modules] is the gallery: for each module what it attacks, how it is built,
// and how it has to end. Modules are written with a small assembler of the Wasm
// binary format (binary.go, instructions.go), because most of them are either
// too large for a text or not valid at all. They import what the tables of
// package abi say, so they stay current by themselves.
//
//	refused.go     what is not a module, lies about itself or breaks the contract
//	oversized.go   small inputs that cost a compiler much
//	memory.go      memories and tables
//	runaway.go     guests that do not come back
//	floods.go      too many hostcalls, and too much in them
//	amplifiers.go  few hostcalls that cost much, and turns that make the next turn
//	arguments.go   hostcalls with arguments that do not make sense
//
// # Running one
//
// A [Stage] is an engine with neighbours: a chain of builtin creatures that
// passes numbered messages on, and a victim beside which the hostile creature
// lives. [Stage.Run] adds the module, hands it one message if it gets that far,
// and returns a [Report] of how it ended and of what others noticed of it.
// [Report.Problems] compares that with what has to be.
package hostile
