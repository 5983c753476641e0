// Package sessions is a gallery of session directories that attack who opens them.
//
// A session directory may come from a stranger. It may be of no use, and every command
// and operation has to say so; it must not panic or hang the process, take memory beyond
// the bounds of a value, or change or read a file outside of the directory.
//
// [Cases] are what somebody has done to a directory that was sound: other things in the
// places of its files (places.go), names that lead elsewhere and rows that contradict
// each other (rows.go), schemas with more in them than ours (schemas.go). [Columns] is a case for
// each column of each table, found in the files themselves, with a value of another type in it.
// The tests of the command line run every command against each.
package sessions
