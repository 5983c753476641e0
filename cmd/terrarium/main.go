// Command terrarium runs recipes of WebAssembly creatures. terrarium help shows
// its commands; docs/reference/command-line.md describes them.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}
