//go:build windows && cgo && !purego

package bind

import "github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"

// Defend reports that the connection cannot be reached: the linker for Windows has no
// weak symbols that could stand for SQLite's functions.
func Defend(*sqlite3.Conn) (reached bool, err error) { return false, nil }

func direct(*sqlite3.Stmt) (Statement, bool) { return nil, false }
