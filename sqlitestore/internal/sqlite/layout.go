package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/abi"
)

// Layout are the tables, indexes, views and triggers of a file by their names. Additional
// ones in an untrusted file could run without end, or do unwanted things.
type Layout map[string]object

// object is one of them.
type object struct{ Kind, table, sql string }

// plannerTables are tables that SQLite itself makes for its planner, when a user requests
// it with another tool. They do no harm.
const plannerTables = "sqlite_stat"

// ReadLayout reads the layout of a file.
func (c *Conn) ReadLayout(ctx context.Context) (Layout, error) {
	out := Layout{}
	err := c.QueryWithin(ctx, "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_schema", nil, func(v []driver.Value) error {
		var name string
		var o object
		if err := TakeRow(v, &name, &o.Kind, &o.table, &o.sql); err != nil {
			return err
		}
		if strings.HasPrefix(name, plannerTables) && o.Kind == "table" {
			return nil
		}
		if _, twice := out[name]; twice {
			return Malformed("the schema has %q twice", Shorten(name))
		}
		o.sql = bareSQL(o.sql)
		out[name] = o
		return nil
	})
	return out, err
}

// bareSQL returns the text of a statement without comments and with single spaces:
// versions of a migration that make the same object may differ in these.
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

// lengthUpTo returns the length of a text up to the end of a mark, or of all of it if
// there is no mark.
func lengthUpTo(text, mark string) int {
	if at := strings.Index(text, mark); at >= 0 {
		return at + len(mark)
	}
	return len(text)
}

// Layouts are the layouts of a schema by version. They are made by the migrations
// themselves, once in a process, so that they need not be defined a second time.
type Layouts struct {
	mu   sync.Mutex
	made map[int64]Layout
}

// Of returns the layout of a version. fill makes the content of a file of that version.
func (l *Layouts) Of(version int64, fill func(c *Conn) error) (Layout, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if made, there := l.made[version]; there {
		return made, nil
	}
	c, err := Temporary()
	if err != nil {
		return nil, err
	}
	var made Layout
	if err = fill(c); err == nil {
		made, err = c.ReadLayout(context.Background()) // the file is ours
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	if l.made == nil {
		l.made = map[int64]Layout{}
	}
	l.made[version] = made
	return made, nil
}

// verify refuses a file whose layout is not the one of its version.
func (s *Schema) verify(ctx context.Context, c *Conn, version int64) error {
	if version < 1 {
		return Malformed("its version is %d", version)
	}
	wanted, err := s.layouts.Of(version, func(c *Conn) error { return s.Raise(context.Background(), c, version) })
	if err != nil {
		return err
	}
	return wanted.Compare(ctx, c, s.What, version == s.Version)
}

// Compare returns an error that says how the layout of a file differs. The views of an
// older version may differ: migrations replace them, and nothing here reads from one.
func (wanted Layout) Compare(ctx context.Context, c *Conn, what string, newest bool) error {
	found, err := c.ReadLayout(ctx)
	if err != nil {
		return err
	}
	for name, o := range found {
		w, known := wanted[name]
		if known && !newest && o.Kind == "view" {
			o.sql = w.sql
		}
		switch {
		case !known:
			return foreign(c.Path, what, fmt.Sprintf("it has the %s %q", Shorten(o.Kind), Shorten(name)))
		case o != w:
			return foreign(c.Path, what, fmt.Sprintf("its %s %q is not the expected one", w.Kind, Shorten(name)))
		}
	}
	for name, w := range wanted {
		if _, there := found[name]; !there {
			return foreign(c.Path, what, fmt.Sprintf("it lacks the %s %q", w.Kind, name))
		}
	}
	return nil
}

func foreign(path, what, difference string) error {
	return &abi.Error{
		Code: abi.Storage, Op: "open", Message: fmt.Sprintf("%s does not have the layout of %s: %s", path, what, difference),
		Remedy: "if the file is yours, undo what another tool has added to its layout; otherwise do not use it. The file is unchanged",
		IDs:    map[string]string{"path": path},
	}
}
