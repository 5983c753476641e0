// Package sqlite is what sqlitestore knows of SQLite, and nothing of graphs.
//
// A [Conn] is one connection to a database that it does not trust: sizes are bounded, and
// whatever the schema of a file calls can do no harm. A [Schema] says which files are ours:
// it makes them, brings older ones up to date, and refuses those that are laid out in
// another way. A [Visitor] reads files of others and leaves nothing behind. [Explained] says in
// plain words what SQLite said.
//
// It is the only package that imports the driver.
package sqlite
