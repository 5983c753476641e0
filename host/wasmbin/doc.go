// Package wasmbin reads, validates, changes and writes modules in the binary
// format of Wasm 2.0. It is what stands between the bytes of a stranger and the
// compiler:
//
//	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
//	infos, err := m.Validate(wasmbin.Limits{})
//	// change m
//	compile(m.Write())
//
// Hand the compiler what [Module.Write] returns rather than the bytes that were
// read: numbers are then in their shortest form, and of the name section only
// the names of the module and its functions are left.
//
// # Bounds
//
// Reading and validating take time in proportion to the module, and memory of at
// most some thirty times its size, whatever the bytes are. Everything that a
// module can have many of, and everything that a few bytes can claim much of,
// has a field in [Limits]. An error names the field, what was found, what is
// allowed, the function where there is one, and the byte.
//
// # Validity
//
// A module is valid when the specification says so, with four exceptions that
// wazero makes necessary, none of which a compiler is known to produce: imports
// name their module, the number behind a prefix is as short as can be, no empty
// custom section stands at the end, and a name section is well-formed. What
// belongs to a later version is refused by the name of the feature.
//
// The other way round, wazero lets pass what the specification forbids in a few
// places: a typed select of other types, constant expressions with mutable
// globals, and parts of later versions. Here they are refused.
//
// # Instructions
//
// [Instrs] walks over a body with all immediates decoded. The module keeps bodies
// as bytes; whoever changes one builds it anew, from the ranges of instructions
// that stay and the Append functions for those that are new.
package wasmbin
