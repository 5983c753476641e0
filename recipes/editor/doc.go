// Package editor answers an editor's questions about recipes: what a word means, where a
// thing is declared and used, what can be written at a place, and which edits rename a
// thing.
//
// The answers come from the tokens of the texts, not from a parsed recipe, so that a recipe
// with mistakes has answers too. Nothing is evaluated, and no module is read. The blocks,
// attributes and functions come from [recipes.DescribeLanguage], so that this package
// knows an addition to the language automatically.
//
// A [Workspace] holds the texts that an editor has opened, and reads the other files of
// their recipes. Positions are offsets in bytes. Only one goroutine at a time may use a
// Workspace.
package editor
