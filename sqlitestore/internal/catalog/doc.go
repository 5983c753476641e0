// Package catalog is the catalogue of a session directory: the database that decides which
// sessions exist, which of them are live, how they descend from each other, and which file
// each has. No other package writes SQL against it. How far each live log was acknowledged
// changes too often for a database, so it is in a file beside it ([Acknowledgements]).
//
// # States
//
// The method named for a change is one transaction, and its comment says what it changes.
//
//	a session  | none       -> live        Create, or Cut as one of the children
//	           | live       -> ended       Cut as one of the parents, or Retire
//	           | ended      -> live        TakeBack of a cut that is not durable; its children are removed
//	           | incomplete -> complete    Complete: its whole history is in its file
//	a cut      | none       -> loose       Cut: it has happened, and a power loss may undo it
//	           | loose      -> firm        Firm: all of it is durable
//	           | loose      -> none        TakeBack, at the next start, if a part of it is missing
//	a file     | unknown    -> of a session    Create or Cut
//	           | unknown    -> being made      Note, which also records its progress
//	           | being made -> of its session  Complete; the previous file is left over
//	           | of a session, or being made -> left over  Release: all of it is in files of descendants
//	           | left over  -> unknown         Sweep, once it has been deleted
//
// A file that is unknown to the catalogue and not marked as unused is reported at the next
// start, or proves the catalogue older than the stores: package rebuild looks for such
// files.
//
// The connection has states as well. It is open. It is closed when the end of a transaction
// fails and it is not known whether the transaction happened. It is ready again when a new
// connection has durably committed an empty transaction, so that what it finds then is
// final. A change whose outcome is not known within a second ends with [ErrUnknown]: the
// next start finds out.
package catalog
