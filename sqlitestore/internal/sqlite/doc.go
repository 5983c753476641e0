// Package sqlite contains what sqlitestore needs of SQLite, and nothing about graphs.
//
// A [Conn] is a connection to a database whose content is not trusted: sizes are bounded,
// and the functions that the schema of a file calls can do no harm. A [Schema] defines
// which files are ours: it makes them, upgrades older ones, and refuses files with another
// layout. A [Visitor] reads files of other processes and leaves nothing behind.
// [Explained] translates SQLite's errors into plain words.
//
// Apart from tests, only this package and its own packages use the driver, through package
// sqlite3.
package sqlite
