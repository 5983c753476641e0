// Package prose has no code of its own: its tests check the wording of pages, of
// comments, and of messages. They look for the words that the glossary
// (docs/reference/glossary.md) says not to use, and for some patterns.
//
//	go test ./internal/prose                 reports what is new
//	go test ./internal/prose -show engine    reports all below a folder or in a file
//	go test ./internal/prose -update         lowers the counts in testdata/baseline.txt
//
// Code in fenced blocks and between backticks is not read, and neither are generated
// Go files and testdata.
package prose
