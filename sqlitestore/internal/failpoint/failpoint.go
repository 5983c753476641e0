// Package failpoint names the steps of sqlitestore that change what is on the disk, and
// lets tests observe each: they kill the process there, make the power fail, or make the
// step fail. Syncs and renames outside of SQLite are done here, so that tests see these
// as well.
package failpoint

import (
	"errors"
	"io/fs"
	"os"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// Point is a named step; see [Hooks].
type Point uint8

const (
	// Files that are made in advance.

	SpareWritten Point = iota // a file for a future session has its layout, and no write-ahead log yet
	SpareReady                // it is durable, with its name

	// The first content of a session's file.

	Filling // all of it is in a transaction that is about to be committed
	Filled  // it is committed

	// The creation of a session without parents, in the catalogue.

	Creating // the catalogue is about to commit it
	Created  // it has

	// Appending to a session.

	Opened    // the session was opened under a new origin, which is not in the file yet
	Appending // a group of records is about to be committed
	Appended  // it is committed, and no caller has been answered

	// Upgrading a file of an older version.

	OriginalCopied // a copy of it exists under a temporary name
	OriginalKept   // the copy has its name
	Migrated       // the file has the newest version

	// A cut.

	Parked  // the parents' writers are parked
	Cutting // the catalogue is about to commit the cut
	Cut     // it has, and no caller has been answered
	Frozen  // the parents are closed for writing, and no child has been opened
	Sealed  // the file of a parent names the cut that it is parked for
	Loose   // the cut has happened, and is about to be made durable
	Firming // it is durable, and the catalogue is about to record this
	Firm    // it has

	// The end of a cut that a power loss has partly destroyed.

	TakingBack // the catalogue is about to return to the parents
	TakenBack  // it has

	// The end of a session, in the catalogue.

	Retiring // the catalogue is about to commit it
	Retired  // it has

	// The making of a session's whole file.

	Noting       // the catalogue is about to record the progress of the file
	Noted        // it has
	Copying      // a chunk of the base is durable, but not recorded in the catalogue yet
	Copied       // all of the base is durable, but not recorded in the catalogue yet
	Stripping    // the live rows of the base are about to be removed, in a transaction
	Stripped     // they are removed
	Uniting      // some events are about to be added, in a transaction
	United       // they are added
	TailFollowed // what the session wrote meanwhile is added, except for the last of it
	Standing     // the session's writer is parked
	Finishing    // the last of it and the live rows are about to be added, in a transaction
	Finished     // the file is complete and durable, but the catalogue does not name it as the session's yet
	Completing   // the catalogue is about to commit that it is the session's
	Completed    // it has, and the writer has the one before open
	Moved        // the writer continues in it

	// Files that are no longer needed.

	Releasing // the catalogue is about to drop the files of ended sessions
	Released  // it has, and the files still exist
	Removing  // one of the files of a database is about to be removed
	Removed   // it is
	Sweeping  // the catalogue is about to drop the names of removed files
	Swept     // it has

	// A fork, in a directory under a temporary name.

	Planting   // the directory exists and is locked, and contains nothing else
	Planted    // its store has the history and the rows of the session that is forked
	Grafted    // the store is that of the fork
	Catalogued // its catalogue is there
	Forking    // all of it is durable, and about to get its name
	Forked     // it has, and the name is durable

	// An export, in a directory that is set aside.

	Exporting // the file is whole and durable, and about to get its name
	Exported  // it has, and the name is durable; what was set aside still exists

	// Making a lost catalogue again.

	Remaking     // an empty one exists, under a temporary name
	Rewriting    // the content derived from the stores is about to be committed to it, in a transaction
	Remade       // it is durable, under that name
	SettingAside // one of the files of the previous catalogue is about to be renamed
	SetAside     // it has been
	Installing   // the new one is about to get the name of the catalogue
	Installed    // it has, and the name is not durable

	Count // how many there are
)

var names = [Count]string{
	SpareWritten: "spare-written", SpareReady: "spare-ready",
	Filling: "filling", Filled: "filled",
	Creating: "creating", Created: "created",
	Opened: "opened", Appending: "appending", Appended: "appended",
	OriginalCopied: "original-copied", OriginalKept: "original-kept", Migrated: "migrated",
	Parked: "parked", Cutting: "cutting", Cut: "cut", Frozen: "frozen",
	Sealed: "sealed", Loose: "loose", Firming: "firming", Firm: "firm", TakingBack: "taking-back", TakenBack: "taken-back",
	Retiring: "retiring", Retired: "retired",
	Noting: "noting", Noted: "noted", Copying: "copying", Copied: "copied", Stripping: "stripping", Stripped: "stripped",
	Uniting: "uniting", United: "united", TailFollowed: "tail-followed",
	Standing: "standing", Finishing: "finishing", Finished: "finished", Completing: "completing", Completed: "completed", Moved: "moved",
	Releasing: "releasing", Released: "released", Removing: "removing", Removed: "removed", Sweeping: "sweeping", Swept: "swept",
	Planting: "planting", Planted: "planted", Grafted: "grafted", Catalogued: "catalogued", Forking: "forking", Forked: "forked",
	Exporting: "exporting", Exported: "exported",
	Remaking: "remaking", Rewriting: "rewriting", Remade: "remade",
	SettingAside: "setting-aside", SetAside: "set-aside", Installing: "installing", Installed: "installed",
}

// String returns the name of the step.
func (p Point) String() string { return names[p] }

// Hooks let tests observe every step, and make it fail. The functions may be nil.
type Hooks struct {
	// Reached is called at every failpoint, with the file that the step is about. Its error
	// makes the step fail; an error after a commit hides that the commit succeeded.
	Reached func(p Point, path string) error
	// Opened is called with the file of every connection that writes to a store, and a
	// function that runs a pragma on the connection.
	Opened func(path string, execute func(pragma string) error) error
	// Synced is called with every file and directory that has been synced outside of SQLite.
	Synced func(path string) error
	// Renamed is called when a directory, or a file that SQLite has had open, has been
	// renamed, and Linked when a file has got an additional name.
	Renamed, Linked func(from, to string)
	// Unsynced omits the syncs outside of SQLite, for tests that involve no power loss.
	Unsynced bool
	// Free returns how many bytes can be written to the disk.
	Free func() int64
	// CopyChunk and UniteChunk replace the sizes of the steps in which history is copied:
	// bytes of a file, and events.
	CopyChunk, UniteChunk int64
	// SmallEvents replaces how many events of a parent a cut copies; negative: none.
	SmallEvents int64
	// Outgrown replaces the size from which a file gets larger pages.
	Outgrown int64
}

// At passes a failpoint.
func (h Hooks) At(p Point, path string) error {
	if h.Reached == nil {
		return nil
	}
	return h.Reached(p, path)
}

// Sync makes a file durable that is not a database yet.
func (h Hooks) Sync(f *os.File) error { return h.syncBy(f.Name(), f.Sync) }

// SyncDirectory makes the entries of a directory durable.
func (h Hooks) SyncDirectory(dir string) error {
	return h.syncBy(dir, func() error { return files.SyncDirectory(dir) })
}

// SyncFile makes a database durable that is not open.
func (h Hooks) SyncFile(path string) error {
	return h.syncBy(path, func() error { return files.Sync(path) })
}

// SyncLog makes the write-ahead log of a database durable, which a writer may have open.
// SQLite locks the database and not its log, so no process loses a lock. If there is no
// log, it has been emptied into the database, durably.
func (h Hooks) SyncLog(path string) error {
	path += "-wal"
	return h.syncBy(path, func() error {
		f, err := files.OpenFile(path, os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

func (h Hooks) syncBy(path string, sync func() error) error {
	if h.Unsynced {
		return nil
	}
	if err := sync(); err != nil {
		return err
	}
	if h.Synced != nil {
		return h.Synced(path)
	}
	return nil
}

// Rename renames a directory of the caller.
func (h Hooks) Rename(from, to string) error { return h.renameBy(os.Rename, from, to) }

// RenameFile renames a file that SQLite has had open.
func (h Hooks) RenameFile(from, to string) error { return h.renameBy(files.Rename, from, to) }

func (h Hooks) renameBy(rename func(from, to string) error, from, to string) error {
	err := rename(from, to)
	if err == nil && h.Renamed != nil {
		h.Renamed(from, to)
	}
	return err
}

// Link gives a file an additional name.
func (h Hooks) Link(from, to string) error {
	err := os.Link(from, to)
	if err == nil && h.Linked != nil {
		h.Linked(from, to)
	}
	return err
}

// WriteWhole writes a file that is either complete or absent.
func (h Hooks) WriteWhole(path string, content []byte) error {
	partial := path + files.PartialSuffix
	f, err := files.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, h.Sync(f), f.Close()); err != nil {
		return errors.Join(err, files.Remove(partial))
	}
	return files.Rename(partial, path)
}
