package sqlitestore

// WithoutSyncs has nothing synced outside of SQLite, for tests that no power loss
// is part of.
var WithoutSyncs = Options{hooks: hooks{unsynced: true}}
