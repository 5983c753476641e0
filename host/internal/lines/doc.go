// Package lines finds the lines of source that a guest was running when it ended,
// in the DWARF sections of its module.
//
// The sections are as untrusted as the module. They are read only after a trap and
// within a time limit, and the memory that this takes is bounded by a small multiple
// of their size.
// Package debug/dwarf reads the entries, after a check that no unit makes it
// read or allocate much more than its size. The line tables are read here,
// because a table of a few bytes can make debug/dwarf allocate any amount.
package lines
