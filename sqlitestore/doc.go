// Package sqlitestore keeps session stores in a directory of SQLite files. It
// implements [journal.Storage] and [journal.Store].
//
// A session directory holds
//
//	lock                    held, and naming its owner, while a process has the directory open
//	acknowledged            how far each live log was acknowledged as durable
//	catalog.db              the sessions: which are live, how they descend from each other, and which file each has
//	stores/<session>.db     the file that a session begins with
//	stores/<session>.N.db   a file with the whole history of that session, or of a descendant
//
// The catalogue alone decides what is live, and which file is whose.
//
// # Cuts
//
// A cut (cut.go) takes files that were made in advance (spare_files.go), writes to them
// what its children own, and then commits one transaction in the catalogue. A failure
// before that transaction leaves the parents as they were; a failure after it leaves the
// children. Only a small history is copied (cut_small.go). Otherwise a child is incomplete
// at first: its history is read from its own file and from those of the ancestors that it
// needs, which together are its family (family.go). The ancestors' files are frozen: after
// a cut, nothing is written to them.
//
// None of that waits for the disk. Right afterwards, all of it is made durable
// (durable_cuts.go, background_sync.go). Events that were written to a child of the
// durability [journal.Full] are acknowledged only then. If the power fails before that,
// the next start finds out whether the cut has happened (recover_cuts.go).
//
// In the background, the child gets a file with its whole history, which is made beside
// the one that it writes to (hydrate.go, build.go). When the catalogue names that file as
// the child's, the child is complete. Then the files of ended sessions that are no longer
// needed are discarded (discard_files.go). The sessions stay in the catalogue, with the
// origins under which they wrote, so that their history can be read from the files of
// their descendants.
//
// Files that the catalogue does not know are leftovers of a cut that did not happen.
// They are deleted if they still carry the mark of an unused file, and otherwise set
// aside under another name.
//
// # Many small stores
//
// The files of new graphs are made in memory and written whole (press.go). If there are
// many, their pages are small, until a file has outgrown them (enlarge.go). A store to which
// nothing is written closes its connection while others need theirs (awake.go).
//
// # Retention
//
// [Retention] bounds the history of each store, and Options.MaxDiskBytes the files of the
// directory (retain.go). A store is pruned by making a new file of what is kept, beside
// the one that is written to, as for a child of a cut; a key in the file gives the time
// before which events may be missing. What is still to be read, and everything later, is
// kept in any case. Without space for a copy (disk_space.go) a history stays where it is.
//
// # A lost catalogue
//
// Every store records about itself and its ancestors what the catalogue records about
// them, so that [Rebuild] can make a new one. Only the metadata of sessions whose files
// are removed is lost.
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
// # Checksums
//
// The rows of the log carry checksums, which readers and [Directory.Verify] check. How
// far each live log was acknowledged is in the file acknowledged beside the catalogue;
// for earlier processes, it is in the catalogue. The next start reports acknowledged
// events that are lost (acknowledged_check.go). It refuses a catalogue if the stores
// prove that it is older than they are.
//
// # Packages
//
// Code that does not need an open store is in packages of its own, and each describes its
// states and transitions. A package may import those above it:
//
//	internal/files      the files of a session directory, which is not trusted
//	internal/failpoint  the steps that tests can observe
//	internal/sqlite     connections, layouts and migrations: SQLite, without graphs
//	internal/storefile  what the file of a session records about itself
//	internal/catalog    the catalogue, and how far logs were acknowledged
//	internal/search     the index for searching, and the search
//	internal/rebuild    a new catalogue from the stores, if it is lost, damaged or older
//
// This package writes and reads stores. The loop of a store (store_loop.go) and the making
// of whole files in the background (hydrate.go) describe their states as well.
//
// # Reading with other tools
//
// The store of a complete session, once closed, is one file that needs no other;
// [Directory.Export] and [View.Export] make such a file of any session at any
// time. The views events, lineage, cursors, state, creatures, channels, timers,
// requests and dead_letters of a store, and sessions of the catalogue, are
// stable; ids in them are text. While the directory is in use, a store is three
// files (.db, .db-wal, .db-shm) that belong together.
package sqlitestore
