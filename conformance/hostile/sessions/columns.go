package sessions

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Columns makes a case for every column of every table of a directory's
// catalogue, a store and the index: a value of another type in all rows. Empty
// tables get no row, because data that is not read attacks nothing.
func Columns(ctx context.Context, d Directory) ([]Case, error) {
	return casesOf(ctx, d, func(file string, c column) (Case, string) {
		return Case{Name: "type-of-" + file + "-" + c.table + "-" + c.name, Attacks: "the reading of columns: " + c.what + " in " + c.table + "." + c.name},
			fmt.Sprintf("UPDATE OR REPLACE %q SET %q = %s", c.table, c.name, c.value)
	})
}

// Texts makes a case for every text column: the smallest value becomes one
// that is not UTF-8, clears a terminal, sets its title and reverses the
// direction of writing.
func Texts(ctx context.Context, d Directory) ([]Case, error) {
	return casesOf(ctx, d, func(file string, c column) (Case, string) {
		if !c.text {
			return Case{}, ""
		}
		return Case{Name: "text-of-" + file + "-" + c.table + "-" + c.name, Attacks: "the terminal: " + c.table + "." + c.name},
			fmt.Sprintf("UPDATE OR REPLACE %q SET %q = CAST(x'781b5b324a1b5d303b78079b33316de280aeff' AS TEXT) WHERE %q = (SELECT min(%q) FROM %q)", c.table, c.name, c.name, c.name, c.table)
	})
}

// casesOf makes a case for every column for which of returns one, with the
// statement that corrupts it.
func casesOf(ctx context.Context, d Directory, of func(file string, c column) (Case, string)) ([]Case, error) {
	first, err := d.Store()
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, file := range []struct {
		name, path string
		at         func(Directory) (string, error)
	}{
		{"catalog", d.Catalog(), func(d Directory) (string, error) { return d.Catalog(), nil }},
		{"store", first, Directory.Store},
		{"search", d.Search(), func(d Directory) (string, error) { return d.Search(), nil }},
	} {
		columns, err := columnsOf(ctx, file.path)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			made, statement := of(file.name, c)
			if statement == "" {
				continue
			}
			made.Spoil = func(ctx context.Context, d Directory) error {
				path, err := file.at(d)
				if err != nil {
					return err
				}
				return loosen(ctx, path, statement)
			}
			out = append(out, made)
		}
	}
	return out, nil
}

type column struct {
	table, name, value, what string
	text                     bool
}

// columnsOf lists the columns that can hold another type: the key of a table with
// rowids cannot.
func columnsOf(ctx context.Context, path string) (out []column, err error) {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'word%' ORDER BY m.name, c.cid`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		var kind string
		var key int
		if err := rows.Scan(&c.table, &c.name, &kind, &key); err != nil {
			return nil, err
		}
		switch strings.ToUpper(kind) {
		case "INTEGER":
			if key > 0 {
				continue
			}
			c.value, c.what = "'x'", "text"
		case "TEXT":
			c.value, c.what, c.text = "x'ff00'", "a blob", true
		default:
			c.value, c.what = "7", "a number"
		}
		out = append(out, c)
	}
	return out, rows.Err()
}
