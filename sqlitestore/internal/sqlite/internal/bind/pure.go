//go:build !cgo || purego

package bind

import "github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"

// Defend sets SQLite's defensive mode.
func Defend(conn *sqlite3.Conn) (reached bool, err error) { return true, conn.Defend() }

func direct(*sqlite3.Stmt) (Statement, bool) { return nil, false }
