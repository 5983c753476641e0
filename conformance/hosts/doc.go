// Package hosts is the conformance suite for hosts of creatures.
//
// A host is operated by an [Adapter]: a program that reads requests as JSON lines and
// answers them ([Start]), or a value in this process ([NewOwn] for terrarium's own host).
// docs/reference/host-adapters.md describes the protocol.
//
// # Cases
//
// [Cases] are data: the files in cases. Each is a sequence of requests with the
// required results, and names the rules that it proves. Most use the probe, a creature
// that makes any hostcalls with any arguments and reports the results:
//
//   - check: state/missing
//     about: state_get of a missing key returns not_found.
//     proves: [ABI-F7]
//     calls: state_get "absent" @4 = not_found -> untouched
//
// The other modules are in modules, beside their sources.
//
// # Running
//
// [Run] gives every check creatures of its own, and starts the adapter again when it is
// lost. The check that lost it is inconclusive.
//
// testdata/mutants.txt lists faulty hosts, and the checks that catch each. A test
// generates it, and proves that at least one of these hosts breaks each requirement.
//
// The folder python has a host on wasmtime in Python, which shares no code with
// terrarium's, with its adapter and its baseline. The folder wazero has one on wazero's
// interpreter in Go, without a meter.
package hosts
