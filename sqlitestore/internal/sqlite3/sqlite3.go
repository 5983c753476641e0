// Package sqlite3 is SQLite: in C, by mattn/go-sqlite3, or translated to Go, by
// modernc.org/sqlite, in a program that is built without cgo or with the tag purego. Both
// write the same files. Everything else is the same in both, apart from [FullText].
package sqlite3
