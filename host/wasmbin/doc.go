// Package wasmbin reads, validates, changes and writes modules in the binary
// format of Wasm 2.0. It stands between untrusted bytes and the compiler:
//
//	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
//	infos, err := m.Validate(wasmbin.Limits{})
//	// change m
//	compile(m.Write())
//
// Pass the compiler the result of [Module.Write] rather than the original
// bytes: numbers are then in their shortest form, and the name section keeps
// only the names of the module and its functions.
//
// # Bounds
//
// For any input, reading and validating take time proportional to the module,
// and memory of at most some thirty times its size. [Limits] has a field for everything
// that can be numerous in a module, and for every quantity that a few bytes can make
// large. An error names the field, the value found, the value allowed, the function if
// there is one, and the byte.
//
// # Validity
// A module is valid if it meets the specification and four extra rules
// required by wazero, which no known compiler breaks: imports name their
// module, the number after a prefix is in its shortest form, no empty custom
// section stands at the end, and a name section is well-formed. A feature of a
// later version is refused by name.
//
// Conversely, wazero accepts a few things that the specification forbids: a
// typed select of other types, constant expressions with mutable globals, and
// parts of later versions. This package refuses them.
//
// # Instructions
//
// [Instrs] iterates over a body with all immediates decoded. The module keeps
// bodies as bytes. To change one, build a new body from the ranges of
// instructions that stay and the Append functions for new ones.
package wasmbin
