// Package operations holds the table of operations: the data API of a terrarium, with
// arguments and results as JSON. [Do] runs one operation. [Serve] reads requests as JSON
// lines and answers them; the command exec uses it. Servers with other protocols, such as
// package serve, are built on the same table.
package operations
