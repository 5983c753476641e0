package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pressly/goose/v3"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

//go:embed schema
var schemaFiles embed.FS

// schema is the layout of one kind of file: migrations from an empty file to
// the newest version. A migration sets user_version to its own number.
type schema struct {
	what          string // as it is called in messages
	applicationID int64
	version       int64
	migrations    fs.FS
	// template is the content of a new, empty file. Migrations are run once in
	// a process to make it, instead of once per file.
	template func() ([]byte, error)
	layouts  layouts
}

var (
	storeSchema   = newSchema("a session store", 0x54455253, 6, subdirectory("schema/store"))
	catalogSchema = newSchema("a session catalogue", 0x54455243, 4, subdirectory("schema/catalog"))
)

func newSchema(what string, applicationID, version int64, migrations fs.FS) *schema {
	s := &schema{what: what, applicationID: applicationID, version: version, migrations: migrations}
	s.template = sync.OnceValues(s.build)
	return s
}

// subdirectory cannot fail for a path that is valid, and ours are constants.
func subdirectory(path string) fs.FS {
	sub, err := fs.Sub(schemaFiles, path)
	if err != nil {
		return schemaFiles
	}
	return sub
}

func (s *schema) build() ([]byte, error) {
	dir, err := os.MkdirTemp("", "terrarium-schema-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	c, err := openConn(path, readWrite)
	if err != nil {
		return nil, err
	}
	// The journal mode is written into the file, so every copy has it.
	if err := errors.Join(c.exec("PRAGMA journal_mode = WAL"), c.close()); err != nil {
		return nil, err
	}
	if err := s.migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// migrate runs the migrations that a file lacks, in one transaction: a process that
// is killed leaves the version that was there, and none between that and the newest.
func (s *schema) migrate(ctx context.Context, path string) (err error) {
	if err := files.CheckDatabase(path, true); err != nil {
		return err
	}
	db := sql.OpenDB(connector{path, readWrite, []string{"PRAGMA synchronous = FULL"}, registerSums})
	defer func() { err = errors.Join(err, db.Close()) }() // which takes back what has not been committed
	db.SetMaxOpenConns(1)
	provider, err := s.provider(db)
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "COMMIT")
	return err
}

// provider runs the migrations. Under WithIsolateDDL it begins no transactions itself:
// the only connection has one already.
func (s *schema) provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectSQLite3, db, s.migrations, goose.WithIsolateDDL(true),
		goose.WithTableName("schema_migration"), goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
}

// age reads whose a file is and which version it has, and refuses what this
// program cannot read, and what is not laid out as that version is. Nothing is written.
func (s *schema) age(ctx context.Context, path string, mode fileMode) (version int64, err error) {
	c, err := openConn(path, mode)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	application, _, err := c.integerWithin(ctx, "PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	if version, _, err = c.integerWithin(ctx, "PRAGMA user_version"); err != nil {
		return 0, err
	}
	switch {
	case application != s.applicationID:
		return 0, &abi.Error{
			Code:    abi.Storage,
			Op:      "open",
			Message: fmt.Sprintf("%s is a SQLite database of another application, not %s", path, s.what),
			Remedy:  "move it away or use another directory; it has been left as it is",
			IDs:     map[string]string{"path": path},
		}
	case version > s.version:
		return 0, &abi.Error{
			Code:    abi.Unsupported,
			Op:      "open",
			Message: fmt.Sprintf("%s has version %d, and this program reads versions up to %d", path, version, s.version),
			Remedy:  "use the newer program that wrote it; the file has been left as it is",
			IDs:     map[string]string{"path": path},
		}
	}
	return version, s.verify(ctx, c, version)
}

// upgrade brings an older file to the newest version and keeps the original
// beside it, as <path>.v<version>.
func (s *schema) upgrade(ctx context.Context, path string, h hooks) error {
	// A connection that may write would empty a write-ahead log into a file
	// that may turn out not to be ours.
	version, err := s.age(ctx, path, readOnly)
	if err != nil || version == s.version {
		return err
	}
	if err := keepOriginal(ctx, path, fmt.Sprintf("%s.v%d", path, version), h); err != nil {
		return err
	}
	if err := s.migrate(ctx, path); err != nil {
		return fmt.Errorf("bringing it from version %d to %d: %w", version, s.version, err)
	}
	tighten(path)
	return h.at(pointMigrated, path)
}

// renew is upgrade for a file that nobody has seen yet, and whose original nobody
// needs.
func (s *schema) renew(ctx context.Context, path string) error {
	version, err := s.age(ctx, path, readOnly)
	if err != nil || version == s.version {
		return err
	}
	if err := s.migrate(ctx, path); err != nil {
		return err
	}
	tighten(path)
	return nil
}

// tighten gives back the room that tables took of which a migration has made others. A
// file that is larger than it need be would count towards what bounds its history. What
// keeps it from being done, such as a full disk, does no other harm.
func tighten(path string) {
	if c, err := openConn(path, readWrite); err == nil {
		_ = errors.Join(c.tempo(true), c.exec("VACUUM"), c.close())
	}
}

// keepOriginal copies a database to a file that stands alone. An unfinished
// copy never has the final name.
func keepOriginal(ctx context.Context, path, original string, h hooks) (err error) {
	if _, err := files.Stat(original); err == nil {
		return nil // made by an attempt that was interrupted while migrating
	}
	partial := original + ".partial"
	if err := files.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := openConn(path, readWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.execWithin(ctx, "VACUUM INTO ?", partial), c.close()); err != nil {
		return err
	}
	if err := files.Sync(partial); err != nil {
		return err
	}
	if err := h.at(pointOriginalCopied, partial); err != nil {
		return err
	}
	if err := files.Rename(partial, original); err != nil {
		return err
	}
	if err := h.syncDirectory(filepath.Dir(original)); err != nil {
		return err
	}
	return h.at(pointOriginalKept, original)
}

// requireCurrent refuses a file that a reader cannot bring up to date.
func (s *schema) requireCurrent(ctx context.Context, path string, mode fileMode) error {
	version, err := s.age(ctx, path, mode)
	if err == nil && version < s.version {
		return &abi.Error{
			Code:    abi.Unsupported,
			Op:      "open",
			Message: fmt.Sprintf("%s has version %d, and reading needs version %d", path, version, s.version),
			Remedy:  "open its directory for writing once, as terrarium resume DIR --plan does, which brings it up to date",
			IDs:     map[string]string{"path": path},
		}
	}
	return err
}
