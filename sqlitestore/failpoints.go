package sqlitestore

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// failpoint is a named step at which tests kill the process, let the power fail
// or make the step fail; see [hooks]. Every step after which something else is on
// the disk than before has one.
type failpoint uint8

const (
	// Files that are made in advance.

	pointSpareWritten failpoint = iota // a file for a session to come has its layout, and no write-ahead log yet
	pointSpareReady                    // it is durable, with its name

	// The first content of a session's file.

	pointFilling // all of it is in a transaction that is about to be committed
	pointFilled  // it is committed

	// The creation of a session without parents, in the catalogue.

	pointCreating // the catalogue is about to commit it
	pointCreated  // it has

	// Appending to a session.

	pointOpened    // the session was opened under a new origin, of which the file knows nothing
	pointAppending // a group of records is about to be committed
	pointAppended  // it is committed, and nobody has been told

	// Bringing a file of an older version up to date.

	pointOriginalCopied // a copy of it is there under a name that is not its own yet
	pointOriginalKept   // the copy has its name
	pointMigrated       // the file has the newest version

	// A cut.

	pointParked  // the parents' writers stand still
	pointCutting // the catalogue is about to commit the cut
	pointCut     // it has, and nobody has been told
	pointFrozen  // the parents are closed for writing, and no child has been opened
	pointSealed  // the file of a parent says which cut it stands still for
	pointLoose   // the cut has happened, and is about to be made durable
	pointFirming // it is durable, and the catalogue is about to say so
	pointFirm    // it has

	// The end of a cut that a power loss has taken a part of.

	pointTakingBack // the catalogue is about to go back to the parents
	pointTakenBack  // it has

	// The end of a session, in the catalogue.

	pointRetiring // the catalogue is about to commit it
	pointRetired  // it has

	// The making of a session's whole file.

	pointNoting       // the catalogue is about to say how far the file has come
	pointNoted        // it has
	pointCopying      // a chunk of the base is durable, and the catalogue does not know
	pointCopied       // all of the base is, and the catalogue does not know
	pointStripping    // the live rows of the base are about to go, in a transaction
	pointStripped     // they are gone
	pointUniting      // some events are about to be added, in a transaction
	pointUnited       // they are added
	pointTailFollowed // what the session wrote meanwhile is added, but for the last of it
	pointStanding     // the session's writer stands still
	pointFinishing    // the last of it and the live rows are about to be added, in a transaction
	pointFinished     // the file is whole and durable, and the catalogue does not know
	pointCompleting   // the catalogue is about to commit that it is the session's
	pointCompleted    // it has, and the writer has the one before open
	pointMoved        // the writer goes on in it

	// What is of no use any more.

	pointReleasing // the catalogue is about to forget the files of ended sessions
	pointReleased  // it has, and they are there
	pointRemoving  // one of the files of a database is about to be removed
	pointRemoved   // it is
	pointSweeping  // the catalogue is about to forget what has been removed
	pointSwept     // it has

	// A fork, in a directory under a name that is not its own.

	pointPlanting   // the directory is there and locked, and nothing else is in it
	pointPlanted    // its store has the history and the rows of the session that is forked
	pointGrafted    // the store is that of the fork
	pointCatalogued // its catalogue is there
	pointForking    // all of it is durable, and about to get its name
	pointForked     // it has, and the name is durable

	// An export, in a directory that is set aside.

	pointExporting // the file is whole and durable, and about to get its name
	pointExported  // it has, and the name is durable; what was set aside is there

	// Making a lost catalogue again.

	pointRemaking     // an empty one is there, under a name that is not its own
	pointRewriting    // what the stores say is about to be committed to it, in a transaction
	pointRemade       // it is durable, under that name
	pointSettingAside // one of the files of the catalogue before is about to get another name
	pointSetAside     // it has
	pointInstalling   // the new one is about to get the name of the catalogue
	pointInstalled    // it has, and the name is not durable

	failpoints // how many there are
)

var failpointNames = [failpoints]string{
	pointSpareWritten: "spare-written", pointSpareReady: "spare-ready",
	pointFilling: "filling", pointFilled: "filled",
	pointCreating: "creating", pointCreated: "created",
	pointOpened: "opened", pointAppending: "appending", pointAppended: "appended",
	pointOriginalCopied: "original-copied", pointOriginalKept: "original-kept", pointMigrated: "migrated",
	pointParked: "parked", pointCutting: "cutting", pointCut: "cut", pointFrozen: "frozen",
	pointSealed: "sealed", pointLoose: "loose", pointFirming: "firming", pointFirm: "firm", pointTakingBack: "taking-back", pointTakenBack: "taken-back",
	pointRetiring: "retiring", pointRetired: "retired",
	pointNoting: "noting", pointNoted: "noted", pointCopying: "copying", pointCopied: "copied", pointStripping: "stripping", pointStripped: "stripped",
	pointUniting: "uniting", pointUnited: "united", pointTailFollowed: "tail-followed",
	pointStanding: "standing", pointFinishing: "finishing", pointFinished: "finished", pointCompleting: "completing", pointCompleted: "completed", pointMoved: "moved",
	pointReleasing: "releasing", pointReleased: "released", pointRemoving: "removing", pointRemoved: "removed", pointSweeping: "sweeping", pointSwept: "swept",
	pointPlanting: "planting", pointPlanted: "planted", pointGrafted: "grafted", pointCatalogued: "catalogued", pointForking: "forking", pointForked: "forked",
	pointExporting: "exporting", pointExported: "exported",
	pointRemaking: "remaking", pointRewriting: "rewriting", pointRemade: "remade",
	pointSettingAside: "setting-aside", pointSetAside: "set-aside", pointInstalling: "installing", pointInstalled: "installed",
}

// String is the name of the step.
func (p failpoint) String() string { return failpointNames[p] }

// step is a transaction of the catalogue: the points right before and right after
// its commit.
type step struct {
	before, after failpoint
	loose         bool // it need not be durable: a power loss may take it back
}

var (
	stepCreate   = step{pointCreating, pointCreated, false}
	stepCut      = step{pointCutting, pointCut, true}
	stepFirm     = step{pointFirming, pointFirm, true}
	stepTakeBack = step{pointTakingBack, pointTakenBack, false}
	stepRetire   = step{pointRetiring, pointRetired, false}
	stepNote     = step{pointNoting, pointNoted, false}
	stepComplete = step{pointCompleting, pointCompleted, false}
	stepRelease  = step{pointReleasing, pointReleased, false}
	stepSweep    = step{pointSweeping, pointSwept, false}
)

// hooks lets tests look at every step, and make it fail. The functions may be nil.
type hooks struct {
	// reached is called at every failpoint, with the file that the step is about.
	// Its error makes the step fail; after a commit, that hides its success.
	reached func(p failpoint, path string) error
	// opened is called with every connection that writes to a store.
	opened func(c *conn) error
	// synced is called with every file, outside of SQLite, and every directory that
	// has been synced.
	synced func(path string) error
	// renamed is called when a directory, or a file that SQLite has had open, has got
	// another name, and linked when a file has got one more.
	renamed, linked func(from, to string)
	// unsynced leaves out those syncs, for tests that no power loss is part of.
	unsynced bool
	// free answers how many bytes can be written to the disk.
	free func() int64
	// copyChunk and uniteChunk stand in for the constants of that name.
	copyChunk, uniteChunk int64
}

// at passes a failpoint.
func (h hooks) at(p failpoint, path string) error {
	if h.reached == nil {
		return nil
	}
	return h.reached(p, path)
}

func (h hooks) bytesAtOnce() int64  { return cmp.Or(h.copyChunk, copyChunk) }
func (h hooks) eventsAtOnce() int64 { return cmp.Or(h.uniteChunk, uniteChunk) }

// sync makes a file durable that is not a database yet.
func (h hooks) sync(f *os.File) error { return h.syncBy(f.Name(), f.Sync) }

// syncDirectory makes the entries of a directory durable.
func (h hooks) syncDirectory(dir string) error {
	return h.syncBy(dir, func() error { return files.SyncDirectory(dir) })
}

// syncFile makes a database durable that nobody has open.
func (h hooks) syncFile(path string) error {
	return h.syncBy(path, func() error { return files.Sync(path) })
}

// syncLog makes the write-ahead log of a database durable, which somebody may be
// writing to. SQLite locks the database and not its log, so that nobody loses a lock.
// When there is none, it has been emptied into the database, durably.
func (h hooks) syncLog(path string) error {
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

func (h hooks) syncBy(path string, sync func() error) error {
	if h.unsynced {
		return nil
	}
	if err := sync(); err != nil {
		return err
	}
	if h.synced != nil {
		return h.synced(path)
	}
	return nil
}

// rename gives a directory of the caller's another name.
func (h hooks) rename(from, to string) error { return h.renameBy(os.Rename, from, to) }

// renameFile gives a file another name that SQLite has had open.
func (h hooks) renameFile(from, to string) error { return h.renameBy(files.Rename, from, to) }

func (h hooks) renameBy(rename func(from, to string) error, from, to string) error {
	err := rename(from, to)
	if err == nil && h.renamed != nil {
		h.renamed(from, to)
	}
	return err
}

// link gives a file one more name.
func (h hooks) link(from, to string) error {
	err := os.Link(from, to)
	if err == nil && h.linked != nil {
		h.linked(from, to)
	}
	return err
}
