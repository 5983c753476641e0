// Package sqlitestore keeps session stores in a directory of SQLite files. It
// implements [journal.Storage] and [journal.Store].
//
// A session directory holds
//
//	lock                    locked while a process has the directory open; names that process
//	acknowledged            how far each live log was acknowledged as durable
//	catalog.db              the sessions: which are live, how they descend from each other, and which file each has
//	stores/<session>.db     the file that a session begins with
//	stores/<session>.N.db   a file with the whole history of that session, or of a descendant
//
// The catalogue alone decides which sessions are live, and which file belongs to which
// session.
//
// # Cuts
//
// A cut (cut.go) writes the live rows of its children to files that were made in advance
// (spare_files.go), and then commits one transaction in the catalogue. After a failure
// before that transaction, the parents continue as they were; after a later failure, the
// children exist. A small history is copied in the cut (cut_small.go). Otherwise a child
// is incomplete at first: its history is read from its own file and from those of the
// ancestors that it needs, which together are its family (family.go). The ancestors'
// files are frozen: after a cut, nothing is written to them.
//
// A cut does not wait for the disk. Right afterwards, all of its writes are made durable
// (durable_cuts.go, background_sync.go). Events that were written to a child of the
// durability [journal.Full] are acknowledged only then. If the power fails before that,
// the next start finds out whether the cut has happened (recover_cuts.go).
//
// In the background, a file with the whole history of the child is made, beside the file
// to which the child writes (hydrate.go, build.go). When the catalogue names that file as
// the child's, the child is complete. Then the files of ended sessions that are no longer
// needed are discarded (discard_files.go). The sessions stay in the catalogue, with the
// origins under which they wrote, so that their history can be read from the files of
// their descendants.
//
// A file that the catalogue does not know is deleted if it still carries the mark of an
// unused file: it is a leftover of a cut that did not happen. If it only repeats data of
// other stores, it is set aside under another name. Any other unknown file may be a store
// that was in use, so it stays in its place.
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
// directory (retain.go). To prune a store, a new file is made with the events that are
// kept, beside the file that is written to, as for a child of a cut. A key in the new
// file gives the time before which events may be missing. Messages that are still to be
// read, and all later events, are always kept. Without space for a copy (disk_space.go),
// a history stays where it is.
//
// # A lost catalogue
//
// Every store also contains the catalogue's records about its session and the ancestors,
// so that [Rebuild] can make a new catalogue. Only the metadata of sessions whose files
// are removed is lost.
//
// # Identity and order
//
// An event's id is (origin, number) and is never changed. Inside a file an origin has a
// small number of its own and the id is one integer, so that events of one origin lie
// together and in order. Copying a history is a union of sets: an event that the file
// already contains is not copied again.
//
// [Store.History] lists events by time, then by origin, then by number. Times are those
// of a hybrid logical clock and rise within an origin, so a cause is listed before its
// effects.
//
// # Checksums
//
// The rows of the log carry checksums, which readers and [Directory.Verify] check. The
// file acknowledged beside the catalogue records how far each live log was acknowledged
// in this process; the catalogue records this for earlier processes. The next start
// reports acknowledged events that are lost (acknowledged_check.go). It refuses a
// catalogue if the stores prove that it is older than they are.
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
