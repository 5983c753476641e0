// Package sqlite is everything that sqlitestore knows about SQLite; it knows nothing
// about graphs.
//
// A [Conn] is one connection to a database that it does not trust: sizes are bounded, and
// the functions that the schema of a file calls can do no harm. A [Schema] defines which
// files are ours: it makes them, upgrades older ones, and refuses files with another
// layout. A [Visitor] reads files of other processes and leaves nothing behind.
// [Explained] translates SQLite's errors into plain words.
//
// It is the only package that imports the driver.
package sqlite
