// Package wasmrun runs a module of package wasmgen and records everything
// observable, so that two ways of running it can be compared.
package wasmrun
