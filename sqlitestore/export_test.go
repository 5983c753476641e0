package sqlitestore

import "github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"

// WithoutSyncs syncs nothing outside of SQLite, for tests without power losses. Cuts copy no
// history, however small it is, so that the background copies it.
var WithoutSyncs = Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: -1}}
