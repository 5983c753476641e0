// Command bench runs the benchmarks of the project and prints each figure
// beside what it is compared with: what matters are the ratios of one run,
// because machines differ and are rarely quiet.
//
//	go run ./internal/bench [-count N] [-run REGEXP] [-growth]
//
// The operations of package topology have tables of their own: mean, median and
// 99th percentile at three sizes, beside the naive way, with their targets; and,
// with -growth, how they grow to a million creatures.
package main
