// Package prose has no code of its own: its tests check the wording of pages, of
// comments, and of messages. They look for the words that the glossary
// (docs/reference/glossary.md) says not to use, and for some patterns.
//
//	go test ./internal/prose                       what is new is reported
//	go test ./internal/prose -run TestProse -show engine   what is left below a folder or in a file
//	go test ./internal/prose -update               lowers the counts in testdata/baseline.txt
//
// What a file of code shows in a fenced block or between backticks is not read, and
// neither are generated Go files and testdata.
package prose
