// Package wasmrun runs a module of package wasmgen and writes down everything
// that can be seen of it, so that two ways of running it can be compared.
package wasmrun
