package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"

	"github.com/seed47132306/terrarium/abi"
)

// layout are the tables, indexes, views and triggers of a file by their names. What a
// file of a stranger has besides could run without end, or do what nobody asked for.
type layout map[string]object

// object is one of them.
type object struct{ kind, table, sql string }

// plannerTables are tables that SQLite itself makes for its planner, at the request of a user
// with another tool. They do no harm.
const plannerTables = "sqlite_stat"

// readLayout reads what a file has.
func (c *conn) readLayout(ctx context.Context) (layout, error) {
	out := layout{}
	err := c.queryWithin(ctx, "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_schema", nil, func(v []driver.Value) error {
		var name string
		var o object
		if err := takeRow(v, &name, &o.kind, &o.table, &o.sql); err != nil {
			return err
		}
		if strings.HasPrefix(name, plannerTables) && o.kind == "table" {
			return nil
		}
		if _, twice := out[name]; twice {
			return &cellError{fmt.Sprintf("the schema has %q twice", shorten(name))}
		}
		o.sql = bareSQL(o.sql)
		out[name] = o
		return nil
	})
	return out, err
}

// bareSQL is the text of a statement without comments, and with one space where there
// may be more: what may differ between the versions of a migration that make the same.
func bareSQL(sql string) string {
	var out strings.Builder
	space := false
	for len(sql) > 0 {
		end := 1
		switch {
		case strings.HasPrefix(sql, "--"):
			end, space = lengthUpTo(sql, "\n"), true
		case strings.HasPrefix(sql, "/*"):
			end, space = lengthUpTo(sql, "*/"), true
		case strings.ContainsRune(" \t\r\n", rune(sql[0])):
			space = true
		default:
			if strings.ContainsRune(`'"`+"`", rune(sql[0])) {
				end = 1 + lengthUpTo(sql[1:], sql[:1])
			}
			if space && out.Len() > 0 {
				out.WriteByte(' ')
			}
			space = false
			out.WriteString(sql[:end])
		}
		sql = sql[end:]
	}
	return out.String()
}

// lengthUpTo is how much of a text there is up to the end of a mark.
func lengthUpTo(text, mark string) int {
	if at := strings.Index(text, mark); at >= 0 {
		return at + len(mark)
	}
	return len(text)
}

// layouts are the layouts of a schema by version. The migrations themselves make them,
// once in a process, so that they need not be written down again.
type layouts struct {
	mu   sync.Mutex
	made map[int64]layout
}

// of answers the layout that a version has. make makes a file of that version.
func (l *layouts) of(version int64, fill func(c *conn) error) (layout, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if made, there := l.made[version]; there {
		return made, nil
	}
	c, err := openTemporary()
	if err != nil {
		return nil, err
	}
	var made layout
	if err = fill(c); err == nil {
		made, err = c.readLayout(context.Background()) // the file is ours
	}
	if err = errors.Join(err, c.close()); err != nil {
		return nil, err
	}
	if l.made == nil {
		l.made = map[int64]layout{}
	}
	l.made[version] = made
	return made, nil
}

// verify refuses a file whose layout is not the one of its version.
func (s *schema) verify(ctx context.Context, c *conn, version int64) error {
	if version < 1 {
		return &cellError{fmt.Sprintf("its version is %d", version)}
	}
	wanted, err := s.layouts.of(version, func(c *conn) error { return s.migrateTemporary(c, version) })
	if err != nil {
		return err
	}
	return wanted.compare(ctx, c, s.what, version == s.version)
}

// migrateTemporary gives a temporary database the layout of a version.
func (s *schema) migrateTemporary(c *conn, version int64) error {
	// The pool never opens a second connection, and closes none: c stays its owner's.
	if err := registerSums(c.raw); err != nil {
		return err
	}
	db := sql.OpenDB(lender{c})
	defer db.Close()
	db.SetMaxOpenConns(1)
	provider, err := s.provider(db)
	if err != nil {
		return err
	}
	_, err = provider.UpTo(context.Background(), version)
	return err
}

// lender is a connector that hands out one connection that is there.
type lender struct{ c *conn }

func (l lender) Connect(context.Context) (driver.Conn, error) { return lent{l.c.raw}, nil }
func (l lender) Driver() driver.Driver                        { return &sqlite3.SQLiteDriver{} }

// lent is a connection that its pool does not close.
type lent struct{ *sqlite3.SQLiteConn }

// Close does nothing.
func (lent) Close() error { return nil }

// compare says in what the layout of a file differs. The views of an older version may
// say something else: migrations make them anew, and nothing here reads from one.
func (wanted layout) compare(ctx context.Context, c *conn, what string, newest bool) error {
	found, err := c.readLayout(ctx)
	if err != nil {
		return err
	}
	for name, o := range found {
		w, known := wanted[name]
		if known && !newest && o.kind == "view" {
			o.sql = w.sql
		}
		switch {
		case !known:
			return foreign(c.path, what, fmt.Sprintf("it has the %s %q", shorten(o.kind), shorten(name)))
		case o != w:
			return foreign(c.path, what, fmt.Sprintf("its %s %q is not as it should be", w.kind, shorten(name)))
		}
	}
	for name, w := range wanted {
		if _, there := found[name]; !there {
			return foreign(c.path, what, fmt.Sprintf("it lacks the %s %q", w.kind, name))
		}
	}
	return nil
}

func foreign(path, what, difference string) error {
	return &abi.Error{
		Code: abi.Storage, Op: "open", Message: fmt.Sprintf("%s is not laid out as %s is: %s", path, what, difference),
		Remedy: "take out what has been added with another tool if the file is yours, and do not use it otherwise; it has been left as it is",
		IDs:    map[string]string{"path": path},
	}
}
