// Package sessions is a gallery of session directories that attack the program
// that opens them.
// A session directory may come from an untrusted source. If it is unusable,
// every command and operation must report this. It must not panic or hang the
// process, take memory beyond the bounds of a value, or change or read a file
// outside the directory.
//
// [Cases] corrupt a sound directory: with other things in place of its files
// (places.go), with names that lead elsewhere and rows that contradict each
// other (rows.go), and with altered schemas (schemas.go). [Columns] is a case
// for each column of each table, found in the files themselves, with a value
// of another type in it. The tests of the command line run every command
// against each.
package sessions
