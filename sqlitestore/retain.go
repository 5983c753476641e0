package sqlitestore

// prunedKey is the key in a file's table store of the time before which history
// may have been given up.
const prunedKey = "pruned"
