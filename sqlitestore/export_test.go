package sqlitestore

import "github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"

// WithoutSyncs has nothing synced outside of SQLite, for tests that no power loss
// is part of.
var WithoutSyncs = Options{hooks: failpoint.Hooks{Unsynced: true}}
