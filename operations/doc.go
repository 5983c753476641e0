// Package operations has the table of operations: everything that can be asked of a
// terrarium as data, with its arguments and results as JSON. [Do] carries out one
// operation; [Serve] reads requests as JSON lines and answers them, which is what the
// command exec does. A server with another protocol is built on the same table.
package operations
