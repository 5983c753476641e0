// Package outsidetest tests requests to the outside with whole processes, which are killed
// while a server counts what arrives.
package outsidetest
