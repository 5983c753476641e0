package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// sessions are the sessions of a directory: the catalogue lists them and their files, and
// the rest is read from these.
type sessions struct {
	*catalog.Catalog
	hooks failpoint.Hooks // for copies of a session that are made elsewhere
}

func missing(path string) bool { return files.Missing(path) }
