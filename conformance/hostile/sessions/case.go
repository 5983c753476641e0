package sessions

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "github.com/seed47132306/terrarium/sqlitestore" // registers the driver
)

// Directory is a session directory to corrupt.
type Directory struct {
	// Path is the directory.
	Path string
	// Outside is a directory beside it with a file notes.txt. Neither the file
	// nor the rest of the directory may change.
	Outside string
}

// Catalog returns the path of the catalogue.
func (d Directory) Catalog() string { return filepath.Join(d.Path, "catalog.db") }

// Search returns the path of the search index.
func (d Directory) Search() string { return filepath.Join(d.Path, "search.db") }

// Notes returns the path of the file outside.
func (d Directory) Notes() string { return filepath.Join(d.Outside, "notes.txt") }

// Store returns the path of the first store.
func (d Directory) Store() (string, error) {
	stores, err := filepath.Glob(filepath.Join(d.Path, "stores", "*.db"))
	if err != nil || len(stores) == 0 {
		return "", fmt.Errorf("%s has no store: %w", d.Path, err)
	}
	return stores[0], nil
}

// Case is one attack.
type Case struct {
	Name string
	// Attacks says what is attacked, and how.
	Attacks string
	// Spoil corrupts a sound directory that no process has open. It returns
	// [errors.ErrUnsupported] if the system cannot do it.
	Spoil func(ctx context.Context, d Directory) error
	// Says is part of the message of at least one command; "" if the case may
	// have no effect.
	Says string
}

// Cases returns all cases except those of [Columns].
func Cases() []Case { return slices.Concat(places(), rows(), schemas()) }

// catalog, store and search corrupt one of the files with SQL.
func catalog(statements ...string) func(context.Context, Directory) error {
	return func(ctx context.Context, d Directory) error { return execute(ctx, d.Catalog(), statements...) }
}

func store(statements ...string) func(context.Context, Directory) error {
	return func(ctx context.Context, d Directory) error {
		path, err := d.Store()
		if err != nil {
			return err
		}
		return execute(ctx, path, statements...)
	}
}

func search(statements ...string) func(context.Context, Directory) error {
	return func(ctx context.Context, d Directory) error { return execute(ctx, d.Search(), statements...) }
}

// execute runs statements on a database, without the checks that its tables have.
func execute(ctx context.Context, path string, statements ...string) error {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range append([]string{"PRAGMA ignore_check_constraints = ON"}, statements...) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %s: %w", filepath.Base(path), s, err)
		}
	}
	return db.Close()
}

// replace replaces a file with something else.
func replace(path string, by func(path string) error) error {
	if err := os.Rename(path, path+"-was"); err != nil && !os.IsNotExist(err) {
		return err
	}
	return by(path)
}

// loosen runs change while every table of a database accepts any type.
func loosen(ctx context.Context, path, change string) error {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'")
	if err != nil {
		return err
	}
	strict := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		strict[name] = text
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rewrite := func(to func(string) string) error {
		if len(strict) == 0 {
			return nil
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		var version int64
		if err := conn.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "PRAGMA writable_schema = ON"); err != nil {
			return err
		}
		for name, text := range strict {
			if _, err := conn.ExecContext(ctx, "UPDATE sqlite_schema SET sql = ? WHERE name = ?", to(text), name); err != nil {
				return err
			}
		}
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA schema_version = %d", version+1))
		return err
	}
	withoutStrict := func(text string) string {
		at := strings.LastIndex(text, ")") + 1
		end := strings.NewReplacer("STRICT, WITHOUT ROWID", "WITHOUT ROWID", "WITHOUT ROWID, STRICT", "WITHOUT ROWID", "STRICT", "").Replace(text[at:])
		return text[:at] + end
	}
	if err := rewrite(withoutStrict); err != nil {
		return err
	}
	if err := execute(ctx, path, change); err != nil {
		return err
	}
	return rewrite(func(text string) string { return text })
}
