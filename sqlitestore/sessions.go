package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// sessions are those of a session directory: the catalogue says which there are and which
// files they have, and the rest is read in these.
type sessions struct {
	*catalog.Catalog
	hooks failpoint.Hooks // for what is made of a session elsewhere
}

func missing(path string) bool { return files.Missing(path) }
