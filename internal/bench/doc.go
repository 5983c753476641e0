// Command bench runs the benchmarks of the project and prints each figure
// beside what it is compared with: what matters are the ratios of one run,
// because machines differ and are rarely quiet.
//
//	go run ./internal/bench [-count N] [-run REGEXP]
package main
