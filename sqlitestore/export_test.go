package sqlitestore

import "github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"

// WithoutSyncs has nothing synced outside of SQLite, for tests that no power loss
// is part of. Cuts copy no history, so that the background does, however small it is.
var WithoutSyncs = Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: -1}}
