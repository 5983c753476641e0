package sqlitestore

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// sessions are the sessions of a directory: the catalogue lists them and their files, and
// the rest is read from these.
type sessions struct {
	*catalog.Catalog
	hooks failpoint.Hooks // for copies of a session that are made elsewhere
	// read opens a store for reading. A file of an older version is upgraded in a directory,
	// and refused in a view.
	read func(ctx context.Context, path string) (*sqlite.Conn, error)
	// inUse returns the open store of a session, or nil. The function is nil in a view.
	inUse func(journal.SessionID) *Store
	// room makes room for more open files. It is nil in a view.
	room roomMaker
}

func missing(path string) bool { return files.Missing(path) }
