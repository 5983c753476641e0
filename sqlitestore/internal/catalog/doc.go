// Package catalog is the catalogue of a session directory: the database that decides which
// sessions there are, which of them are live, who came from whom, and which file each has.
// Nothing else writes SQL against it. What changes too often for a database, how far each
// live log was acknowledged, is in a file beside it ([Acknowledgements]).
//
// # States
//
// The method that tells of a change is one transaction, and says what it changes.
//
//	a session  | none       -> live        Create, or Cut as one of the children
//	           | live       -> ended       Cut as one of the parents, or Retire
//	           | ended      -> live        TakeBack of a cut that is not durable; its children are none again
//	           | incomplete -> complete    Complete: its whole history is in its file
//	a cut      | none       -> loose       Cut: it has happened, and a power loss may take it back
//	           | loose      -> firm        Firm: all of it is durable
//	           | loose      -> none        TakeBack, at the next start, if a part of it is missing
//	a file     | unknown    -> of a session    Create or Cut
//	           | unknown    -> being made      Note, which also tells how far it has come
//	           | being made -> of its session  Complete; the file before is left over
//	           | of a session, or being made -> left over  Release: all of it is in files of descendants
//	           | left over  -> unknown         Sweep, once it has been removed
//
// A file that is unknown to the catalogue and not marked as unused is told of at the next
// start, or proves the catalogue older than the stores: package rebuild looks for such files.
//
// The connection has states as well. It is open; when the end of a transaction fails and
// it is not known whether it happened, it is closed; and it is ready again when a new
// one has committed nothing, durably, so that what is found then is so for good. A change of
// which that does not tell within a second ends with [ErrUnknown]: the next start finds out.
package catalog
