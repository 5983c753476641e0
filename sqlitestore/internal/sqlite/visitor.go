package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Visitor reads databases that it must not change. Even a read-only connection makes a
// write-ahead log and its shared memory if there is none, and cannot remove them; so the
// visitor records what it has found.
type Visitor struct {
	lone map[string]bool // files by path: had no write-ahead log when first looked at
}

// NewVisitor begins a visit, which Leave ends.
func NewVisitor() *Visitor { return &Visitor{lone: map[string]bool{}} }

// Lone reports whether a file had no write-ahead log when it was first looked at: then
// it is not in use.
func (v *Visitor) Lone(path string) bool { return v.lone[path] }

func (v *Visitor) note(path string) {
	if _, seen := v.lone[path]; !seen {
		v.lone[path] = files.Missing(path + "-wal")
	}
}

// Open is [Schema.Open] in the mode in which the file can be read.
func (v *Visitor) Open(ctx context.Context, s *Schema, path string) (c *Conn, version int64, err error) {
	v.note(path)
	c, version, err = s.Open(ctx, path, ReadOnly)
	if err == nil {
		return c, version, nil
	}
	mode, err := modeAfter(path, err)
	if mode == Immutable {
		return s.Open(ctx, path, mode)
	}
	return nil, 0, err
}

// Visit returns the mode in which a file can be read.
func (v *Visitor) Visit(ctx context.Context, path string) (Mode, error) {
	v.note(path)
	err := probe(ctx, path, ReadOnly)
	if err == nil {
		return ReadOnly, nil
	}
	mode, err := modeAfter(path, err)
	if mode == Immutable {
		err = probe(ctx, path, mode)
	}
	return mode, err
}

// Leave removes what reading has left beside the files, after they have been closed.
// SQLite does so when the last connection is closed, if that connection may write; other
// users of the file lose nothing. Files that cannot be removed are empty, and are removed
// when the database is next used.
func (v *Visitor) Leave() {
	for path, lone := range v.lone {
		if info, err := files.Stat(path + "-wal"); lone && err == nil && info.Size() == 0 {
			_ = probe(context.Background(), path, leaving) // a reader that has been interrupted leaves as well
		}
	}
}

// modeAfter returns the mode for reading a file that could not be read in the usual one,
// or why it cannot be read. SQLite needs to write a little even for reading, unless the
// file is opened as immutable.
func modeAfter(path string, err error) (Mode, error) {
	var se sqlite3.Error
	if !errors.As(err, &se) || tooMany(err) || se.Code != sqlite3.ErrCantOpen && se.Code != sqlite3.ErrReadonly {
		return ReadOnly, err
	}
	if _, statErr := files.Stat(path); statErr != nil {
		return ReadOnly, err
	}
	switch info, statErr := files.Stat(path + "-wal"); {
	case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
		return ReadOnly, err // there may be a log, without which the file is out of date
	case statErr == nil && info.Size() > 0:
		return ReadOnly, &abi.Error{
			Code:    abi.Storage,
			Op:      "open",
			Message: fmt.Sprintf("%s was not closed and is on a read-only medium", path),
			Remedy:  "copy the directory to a writable place, and read the copy",
			IDs:     map[string]string{"path": path},
			Err:     err,
		}
	}
	return Immutable, nil
}

func probe(ctx context.Context, path string, mode Mode) error {
	c, err := Open(path, mode)
	if err != nil {
		return err
	}
	_, _, err = c.IntegerWithin(ctx, "SELECT count(*) FROM sqlite_schema")
	return errors.Join(err, c.Close())
}
