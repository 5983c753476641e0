package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
)

// Schema is the layout of one kind of file: migrations from an empty file to
// the newest version. A migration sets user_version to its own number.
type Schema struct {
	What          string // its name in messages
	ApplicationID int64
	Version       int64
	Migrations    fs.FS               // files that begin with their number, in five digits
	Functions     map[string]Function // that migrations call
	// Template is the content of a new, empty file. Migrations are run once in
	// a process to make it, instead of once per file.
	Template func() ([]byte, error)
	layouts  Layouts
}

// Function is a deterministic function for SQL, of any number of values.
type Function = func(values ...any) (int64, error)

// NewSchema describes a kind of file by its migrations.
func NewSchema(what string, applicationID, version int64, migrations fs.FS, functions map[string]Function) *Schema {
	s := &Schema{What: what, ApplicationID: applicationID, Version: version, Migrations: migrations, Functions: functions}
	s.Template = sync.OnceValues(s.build)
	return s
}

// build makes the template in memory, because the only directory that can be written to
// may be that of the sessions.
func (s *Schema) build() ([]byte, error) {
	c, err := s.InMemory(context.Background(), UsualPage)
	if err != nil {
		return nil, err
	}
	content, err := c.Image()
	return content, errors.Join(err, c.Close())
}

// UsualPage is the size of the pages of a file, in bytes, that SQLite chooses.
const UsualPage = 4096

// InMemory makes a new, empty file in memory, with pages of a given size.
func (s *Schema) InMemory(ctx context.Context, page int) (*Conn, error) {
	raw, err := openGuarded("file:template?mode=memory")
	if err != nil {
		return nil, err
	}
	c := &Conn{raw: raw, Path: "a new file", Mode: ReadWrite}
	if err = c.Exec(fmt.Sprintf("PRAGMA page_size = %d", page)); err == nil {
		err = s.Raise(ctx, c, s.Version)
	}
	if err == nil {
		err = c.Exec("VACUUM") // without the pages of tables that migrations have replaced
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Image returns the content of the file that a database in memory would have, with the
// changes of the present transaction.
func (c *Conn) Image() ([]byte, error) {
	content, err := sqlite3.Serialize(c.raw)
	if err != nil {
		return nil, err
	}
	if len(content) < headerSize {
		return nil, fmt.Errorf("a new file has %d bytes", len(content))
	}
	content[writeVersion], content[readVersion] = useLog, useLog
	return content, nil
}

// The header of a database says that it has a write-ahead log, which no database in memory has.
const (
	headerSize                = 100
	writeVersion, readVersion = 18, 19 // where they are
	useLog                    = 2
	versionAt, applicationAt  = 60, 68 // where the pragmas user_version and application_id are
)

// migrate runs the migrations that a file lacks, in one transaction: if the process is
// killed, the file has the earlier version or the newest, and none in between.
func (s *Schema) migrate(ctx context.Context, path string) error {
	c, err := Open(path, ReadWrite)
	if err != nil {
		return err
	}
	if err = c.SetDurable(true); err == nil {
		err = s.Raise(ctx, c, s.Version)
	}
	return errors.Join(err, c.Close())
}

// migrationTable records the migrations that a file has had. Its layout is that of the
// library that once ran them (goose), so that programs of that time can use the file.
const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migration (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
	INSERT INTO schema_migration (version_id, is_applied) SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM schema_migration)`

// Raise runs the migrations that a database lacks up to a version, in one transaction.
func (s *Schema) Raise(ctx context.Context, c *Conn, version int64) error {
	for name, function := range s.Functions {
		if err := c.raw.RegisterFunc(name, function, true); err != nil {
			return err
		}
	}
	names, err := fs.Glob(s.Migrations, "*.sql") // in the order of their numbers
	if err != nil {
		return err
	}
	return c.Transact(func() error {
		if err := c.ExecWithin(ctx, migrationTable); err != nil {
			return err
		}
		has, _, err := c.IntegerWithin(ctx, "SELECT max(version_id) FROM schema_migration")
		if err != nil {
			return err
		}
		for _, name := range names {
			var number int64
			if _, err := fmt.Sscanf(name, "%05d_", &number); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if number <= has || number > version {
				continue
			}
			if err := s.step(ctx, c, name, number); err != nil {
				return err
			}
		}
		return nil
	})
}

// step runs one migration, and records it.
func (s *Schema) step(ctx context.Context, c *Conn, name string, number int64) error {
	text, err := fs.ReadFile(s.Migrations, name)
	if err == nil {
		err = c.ExecWithin(ctx, string(text))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.ExecWithin(ctx, "INSERT INTO schema_migration (version_id, is_applied) VALUES (?, 1)", number)
}

// Age returns the version of a file, with the checks of [Schema.Open].
func (s *Schema) Age(ctx context.Context, path string, mode Mode) (version int64, err error) {
	c, version, err := s.Open(ctx, path, mode)
	if err != nil {
		return 0, err
	}
	return version, c.Close()
}

// IsCurrent reports whether the header of the file has the newest version, without opening
// the database. It does not look into a write-ahead log, which may also have a newer header.
func (s *Schema) IsCurrent(path string) bool {
	header, err := files.ReadFile(path, headerSize)
	return err == nil && len(header) == headerSize &&
		binary.BigEndian.Uint32(header[versionAt:]) == uint32(s.Version) && binary.BigEndian.Uint32(header[applicationAt:]) == uint32(s.ApplicationID)
}

// Open opens a file and returns its version. It refuses files that this program cannot
// read, and files whose layout is not that of their version. Nothing is written.
func (s *Schema) Open(ctx context.Context, path string, mode Mode) (c *Conn, version int64, err error) {
	if c, err = Open(path, mode); err != nil {
		return nil, 0, err
	}
	if version, err = s.check(ctx, c); err != nil {
		return nil, 0, errors.Join(err, c.Close())
	}
	return c, version, nil
}

// check returns the version of an open file. It reads the version and the layout in one
// transaction, because the file may be upgraded meanwhile.
func (s *Schema) check(ctx context.Context, c *Conn) (version int64, err error) {
	path := c.Path
	if c.raw.AutoCommit() {
		if err := c.ExecWithin(ctx, "BEGIN"); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, c.Rollback()) }()
	}
	application, _, err := c.IntegerWithin(ctx, "PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	if version, _, err = c.IntegerWithin(ctx, "PRAGMA user_version"); err != nil {
		return 0, err
	}
	switch {
	case application != s.ApplicationID:
		return 0, &abi.Error{
			Code:    abi.Storage,
			Op:      "open",
			Message: fmt.Sprintf("%s is a SQLite database of another application, not %s", path, s.What),
			Remedy:  "move it away or use another directory; it has been left as it is",
			IDs:     map[string]string{"path": path},
		}
	case version > s.Version:
		return 0, &abi.Error{
			Code:    abi.Unsupported,
			Op:      "open",
			Message: fmt.Sprintf("%s has version %d, and this program reads versions up to %d", path, version, s.Version),
			Remedy:  "use the newer program that wrote it; the file has been left as it is",
			IDs:     map[string]string{"path": path},
		}
	}
	return version, s.verify(ctx, c, version)
}

// upgrading has room for one upgrade, so that there is only one at a time. A file may be
// opened for reading and for writing at the same time, and two upgrades would remove each
// other's copy of the original. Other processes are kept out by the lock of the directory.
var upgrading = make(chan struct{}, 1)

// Upgrade brings an older file to the newest version and keeps the original beside it, as
// <path>.v<version>. It may be called for a file from several goroutines; the first one
// upgrades it, and the others wait.
func (s *Schema) Upgrade(ctx context.Context, path string, h failpoint.Hooks) error {
	version, err := s.Age(ctx, path, ReadOnly)
	if err != nil || version == s.Version {
		return err
	}
	select {
	case upgrading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-upgrading }()
	return s.upgrade(ctx, path, h)
}

func (s *Schema) upgrade(ctx context.Context, path string, h failpoint.Hooks) error {
	// A writable connection would empty a write-ahead log into a file that may turn out
	// not to be ours.
	version, err := s.Age(ctx, path, ReadOnly)
	if err != nil || version == s.Version {
		return err
	}
	if err := keepOriginal(ctx, path, fmt.Sprintf("%s.v%d", path, version), h); err != nil {
		return err
	}
	if err := s.migrate(ctx, path); err != nil {
		return fmt.Errorf("upgrading it from version %d to %d: %w", version, s.Version, err)
	}
	tighten(path)
	return h.At(failpoint.Migrated, path)
}

// Renew is [Schema.Upgrade] for a file that is not in use yet, and whose original is not
// needed.
func (s *Schema) Renew(ctx context.Context, path string) error {
	version, err := s.Age(ctx, path, ReadOnly)
	if err != nil || version == s.Version {
		return err
	}
	if err := s.migrate(ctx, path); err != nil {
		return err
	}
	tighten(path)
	return nil
}

// tighten frees the space of tables that a migration has replaced. A file that is larger
// than necessary would count towards the bounds of its history. An error, such as a full
// disk, does no other harm.
func tighten(path string) {
	if c, err := Open(path, ReadWrite); err == nil {
		_ = errors.Join(c.SetDurable(true), c.Exec("VACUUM"), c.Close())
	}
}

// keepOriginal copies a database to a file that needs no other. An unfinished copy never
// has the final name.
func keepOriginal(ctx context.Context, path, original string, h failpoint.Hooks) (err error) {
	if _, err := files.Stat(original); err == nil {
		return nil // made by an attempt that was interrupted while migrating
	}
	partial := original + ".partial"
	if err := files.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := Open(path, ReadWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.CopyTo(ctx, partial), c.Close()); err != nil {
		return err
	}
	if err := files.Sync(partial); err != nil {
		return err
	}
	if err := h.At(failpoint.OriginalCopied, partial); err != nil {
		return err
	}
	if err := files.Rename(partial, original); err != nil {
		return err
	}
	if err := h.SyncDirectory(filepath.Dir(original)); err != nil {
		return err
	}
	return h.At(failpoint.OriginalKept, original)
}

// RequireCurrent refuses a file whose version is too old for a reader, which cannot
// upgrade it.
func (s *Schema) RequireCurrent(path string, version int64) error {
	if version >= s.Version {
		return nil
	}
	return &abi.Error{
		Code:    abi.Unsupported,
		Op:      "open",
		Message: fmt.Sprintf("%s has version %d, and reading needs version %d", path, version, s.Version),
		Remedy:  "open its directory for writing once, as terrarium resume DIR --plan does, which brings it up to date",
		IDs:     map[string]string{"path": path},
	}
}
