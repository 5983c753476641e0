// Command bench runs the benchmarks of the project and prints each figure
// beside its reference. Only the ratios within one run matter, because
// machines differ and are rarely quiet.
//
// Other hosts of Wasm, which requests are compared with, are in the Go module
// peers. Without a network that may not build, and is left out.
//
//	go run ./internal/bench [-count N] [-run REGEXP] [-growth]
//
// The operations of package topology have separate tables: mean, median and 99th percentile at
// three sizes, beside the naive way, with their targets; and, with -growth, how they grow to a
// million creatures. The kits for creatures have a table too: what each language costs. -run
// kits prints only that table.
package main
