// Package lines tells which lines of source a guest was running when it ended,
// from the DWARF sections of its module.
//
// The sections are as untrusted as the module. They are read only after a trap,
// within a time, and memory is bounded by a small multiple of their size.
// Package debug/dwarf reads the entries, after a check that no unit makes it
// read or allocate much more than its size. The line tables are read here,
// because a table of a few bytes can make debug/dwarf allocate any amount.
package lines
