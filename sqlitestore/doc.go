// Package sqlitestore keeps session stores in a directory of SQLite files. It
// implements [engine.Storage] and [engine.Store].
//
// A session directory holds
//
//	lock                  held, and naming its owner, while a process has the directory open
//	catalog.db            which stores there are, which are live, and who came from whom
//	stores/<session>.db   one file per session: the whole history and the live rows of one graph
//
// The catalogue alone decides what is live. A cut writes its new files first
// and then commits one transaction in the catalogue: whatever happens before
// leaves the parents as they were, whatever happens after leaves the children.
// Files that the catalogue does not know are leftovers of a cut that did not
// happen: they are deleted if they still carry the mark of an unused file, and
// set aside under another name otherwise.
//
// # Identity and order
//
// An event's id is (origin, number) and is never changed. Inside a file an
// origin has a small number of its own and the id is one integer, so that
// events of one origin lie together and in order. Copying a history is a union
// of sets: an event that is there already is not copied again.
//
// [Store.History] lists events by time; events with the same time by origin,
// then by number. Times are those of a hybrid logical clock and rise within an
// origin, so a cause is listed before its effects.
//
// # Reading with other tools
//
// A store that has been closed is one self-contained file. The views events,
// lineage, cursors, state, creatures, channels, timers, requests and
// dead_letters are stable; ids in them are text. While the directory is in use,
// a store is three files (.db, .db-wal, .db-shm) that belong together.
package sqlitestore
