// Package abi is the contract between a creature (a Wasm module) and the host
// that runs it. It holds tables and types and no implementation: the functions
// a creature may import, the numbered sources it may read, the kinds of
// delivery it may be handed, the error codes, the limits and the manifest.
//
// The normative text is README.md beside this file; the tables here are its
// machine-readable twin, and the C header and the Go guest bindings under sdk/
// are generated from them (go generate ./abi).
//
// The package also declares the seam between a Wasm host and an engine
// ([Host], [Module], [Instance], [Turn]), so that either side can be replaced
// and tested without the other, and the one error type of the project
// ([Error]).
package abi

//go:generate go run ./gen -root ..

// Version is the version of the contract described by this package.
const Version = 1

// Names that a module has to spell exactly.
const (
	// ImportModule is the module name of every function in [Functions].
	ImportModule = "terrarium_v1"
	// ExportMarker is the marker export that declares ABI version 1. It is
	// never called.
	ExportMarker = "terrarium_abi_v1"
	// ExportMemory is the linear memory that hostcalls read and write.
	ExportMemory = "memory"
	// ExportHandle is called once per delivery: (kind i32, size i32) -> i32.
	ExportHandle = "creature_handle"
	// ExportInit is optional: () -> i32, called once per instance. It may only
	// read; zero or more is success.
	ExportInit = "creature_init"
	// ExportStop is optional: () -> (), called once before an orderly close of
	// an instance. It may only read.
	ExportStop = "creature_stop"
	// ExportGraphChanged is an optional marker export: the module handles
	// [KindGraphChanged]. It is never called.
	ExportGraphChanged = "terrarium_graph_changed"
	// ExportInitialize is optional: () -> (), the initializer of a reactor
	// module. It is called before everything else.
	ExportInitialize = "_initialize"
	// ManifestSection is the name of the custom section with the manifest.
	ManifestSection = "terrarium.creature"
)
