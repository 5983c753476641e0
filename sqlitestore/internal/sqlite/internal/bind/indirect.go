//go:build windows

package bind

import "github.com/mattn/go-sqlite3"

// Defend reports that the connection cannot be reached: the linker for Windows has no
// weak symbols that could stand for SQLite's functions.
func Defend(*sqlite3.SQLiteConn) (reached bool, err error) { return false, nil }

func direct(*sqlite3.SQLiteStmt) (Statement, bool) { return nil, false }
