package sqlitestore

import (
	"errors"
	"path/filepath"
	"strconv"

	"github.com/seed47132306/terrarium/engine"
)

// prepare makes the file of a new session, marked as unused, and opens it for
// writing with a new origin. What is written to it is made durable by settle.
func (d *Directory) prepare(e entry, meta map[string]string) (w *writer, err error) {
	content, err := storeSchema.template()
	if err != nil {
		return nil, err
	}
	if err := writeWhole(e.Path, content); err != nil {
		return nil, err
	}
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	if w, err = openWriter(e.Path, e.Durability, origin, d.options.hooks); err != nil {
		return nil, err
	}
	if err := w.c.exec("PRAGMA synchronous = FULL"); err != nil {
		return w, err
	}
	return w, w.c.transact(func() error { return w.writeOwn(&engine.Record{Meta: meta}) })
}

// identify writes what the file is and where it comes from, within a
// transaction.
func (w *writer) identify(e entry) error {
	for _, pair := range [][2]string{
		{"session", string(e.Session)},
		{"graph", string(e.Graph)},
		{"born", strconv.FormatUint(e.born, 10)},
		{"durability", e.Durability.String()},
		{"created", strconv.FormatInt(e.Created, 10)},
		{"cut", e.cut},
	} {
		if err := w.c.exec("INSERT INTO store (key, value) VALUES (?, ?)", pair[0], pair[1]); err != nil {
			return err
		}
	}
	parents := e.Parents
	if len(parents) == 0 {
		parents = []engine.SessionID{""}
	}
	for i, p := range parents {
		if err := w.c.exec("INSERT INTO ancestor (session, ordinal, parent, graph, created, merged_at, split_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
			string(e.Session), int64(i), text(string(p)), string(e.Graph), e.Created, e.MergedAt, e.SplitAt); err != nil {
			return err
		}
	}
	return nil
}

// settle makes sure that the file is found again after a power loss, and lets
// the writer go on as durably as was asked for. SQLite has synced the content:
// all transactions so far were of the durability full.
func (d *Directory) settle(w *writer) error {
	if err := d.options.hooks.syncDirectory(filepath.Dir(w.path)); err != nil {
		return err
	}
	return w.pace()
}

// discard removes a file that the catalogue has not accepted.
func discard(w *writer, path string) error {
	var err error
	if w != nil {
		err = w.close()
	}
	return errors.Join(err, removeDatabase(path))
}
