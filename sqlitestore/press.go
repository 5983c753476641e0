package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// press makes the files of new sessions: a transaction writes the content of a file to a
// database in memory, the database is written to the file, and the transaction is rolled
// back. A connection for each file would first have to parse its layout and compile the
// statements, which takes five times as long. A press is used by one goroutine at a time.
type press struct {
	c  *sqlite.Conn
	st statements
}

func newPress(ctx context.Context, page int) (*press, error) {
	c, err := storefile.Schema.InMemory(ctx, page)
	if err != nil {
		return nil, err
	}
	p := &press{c: c, st: newStatements(c)}
	if err := storefile.NameKinds(c); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *press) close() error {
	return errors.Join(p.st.close(), p.c.Rollback(), p.c.Close())
}

// print returns the content of the file of a writer that has no connection. write writes
// to the database with a writer of the same file.
func (p *press) print(of *writer, write func(w *writer) error) (image []byte, err error) {
	w := &writer{path: of.path, durability: of.durability, own: of.own, hooks: of.hooks, c: p.c, st: p.st}
	if err := p.c.Exec("BEGIN"); err != nil {
		return nil, err
	}
	err = errors.Join(w.loadOrigins(), w.loadIndex(), w.loadChain(), w.loadChanges())
	if err == nil {
		err = write(w)
	}
	if err == nil {
		image, err = p.c.Image()
	}
	return image, errors.Join(err, p.c.Rollback())
}

// newFile names the file of a future session, which does not exist yet.
func (d *Directory) newFile() (*spareFile, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	path, err := d.catalog.FilePath(id.String() + files.StoreSuffix)
	if err != nil {
		return nil, err
	}
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, durability: journal.Normal, own: origin, hooks: d.options.hooks, marked: true}
	return &spareFile{writer: w, session: journal.SessionID(strings.TrimSuffix(filepath.Base(path), files.StoreSuffix))}, nil
}

// printedAtOnce is how many files are in memory at the same time, and are synced together.
const printedAtOnce = 16

// presses has a press for each page size of new files. Its methods are called by one
// goroutine at a time.
type presses map[int]*press

// of returns the press for a size of pages.
func (p presses) of(ctx context.Context, page int) (_ *press, err error) {
	if p[page] == nil {
		p[page], err = newPress(ctx, page)
	}
	return p[page], err
}

func (p presses) close() error {
	var errs []error
	for page, made := range p {
		errs = append(errs, made.close())
		delete(p, page)
	}
	return errors.Join(errs...)
}

// printNew writes the files of new sessions, and makes them and their names durable. If
// the directory has many open stores, the new files have small pages.
func (d *Directory) printNew(ctx context.Context, made []*child) error {
	d.mu.Lock()
	open := len(d.open)
	d.mu.Unlock()
	for first := 0; first < len(made); first += printedAtOnce {
		var tasks []func() error
		for _, c := range made[first:min(first+printedAtOnce, len(made))] {
			page := sqlite.UsualPage
			if open++; open > d.options.naps.most {
				page = smallPage
			}
			image, err := d.print(ctx, c, page)
			if err == nil && page == smallPage && int64(len(image)) > d.smallest()/2 {
				image, err = d.print(ctx, c, sqlite.UsualPage) // it would be outgrown soon
			}
			if err != nil {
				return errors.Join(err, d.presses.close()) // the state of the presses is unknown
			}
			tasks = append(tasks, func() error { return d.options.hooks.WriteWhole(c.Path, image) })
		}
		if err := atOnce(tasks); err != nil {
			return err
		}
	}
	if err := d.options.hooks.SyncDirectory(filepath.Dir(made[0].Path)); err != nil {
		return err
	}
	for _, c := range made {
		if err := d.options.hooks.At(failpoint.Filled, c.Path); err != nil {
			return err
		}
	}
	return nil
}

// print returns the content of the file of a session without parents.
func (d *Directory) print(ctx context.Context, c *child, page int) ([]byte, error) {
	press, err := d.presses.of(ctx, page)
	if err != nil {
		return nil, err
	}
	c.p.durability = c.Durability
	return press.print(c.p.writer, func(w *writer) error {
		if err := errors.Join(w.claim(), w.identify(c.Entry, d.home), w.writeOwn(&journal.Record{Meta: c.plan.Meta}), c.relations.write(w.c)); err != nil {
			return err
		}
		if c.first != nil {
			if err := w.apply([]*journal.Record{c.first}); err != nil {
				return err
			}
		}
		if err := w.layBase(); err != nil {
			return err
		}
		return d.options.hooks.At(failpoint.Filling, c.Path)
	})
}
