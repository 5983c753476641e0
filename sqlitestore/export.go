package sqlitestore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// Export writes a session, live or ended, to a file that needs no other: its whole history
// and, as long as its own file exists, its live rows. The file is a snapshot of what had
// been appended when Export was called. The file must not exist yet: otherwise Export
// returns already_exists.
func (a *archive) Export(ctx context.Context, session journal.SessionID, path string) error {
	if err := a.flush(ctx, session); err != nil {
		return err
	}
	return a.newFile(path, func(made string) error { return a.catalog.materialise(ctx, "export", session, made) })
}

// flushed is the function flush of the directory's archive: a copy must not contain a cut
// that a power loss can undo.
func (d *Directory) flushed(ctx context.Context, session journal.SessionID) error {
	if s := d.opened(session); s != nil {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	return d.makeFirm()
}

func exists(op, path string) error {
	return &abi.Error{
		Code: abi.AlreadyExists, Op: op, Message: path + " exists already",
		Remedy: "choose a path that does not exist yet; this one has been left as it is", IDs: map[string]string{"path": path},
	}
}

// unwritable is the error for a destination that cannot be written: the session that is
// read is not at fault.
func unwritable(op, path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &abi.Error{
		Code: abi.Storage, Op: op, Message: path + " cannot be written",
		Remedy: "name a place in a directory that exists and may be written to", IDs: map[string]string{"path": path}, Err: err,
	}
}

// newFile makes a file outside of the session directory.
func (a *archive) newFile(path string, fill func(made string) error) error {
	to, err := a.catalog.destinationOf("export", path)
	if err == nil {
		err = to.clear(false)
	}
	if err != nil {
		return err
	}
	return to.makeFile(fill)
}

// WriteFile writes a file outside of the session directory with data from it. The file
// must not exist yet. It gets its name when it is complete and durable.
func (a *archive) WriteFile(path string, write func(io.Writer) error) error {
	return a.newFile(path, func(made string) error {
		f, err := files.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
		if err != nil {
			return err
		}
		err = write(f)
		return errors.Join(err, a.catalog.hooks.Sync(f), f.Close())
	})
}

// materialise writes a session to a durable file that needs no other.
func (k *sessions) materialise(ctx context.Context, op string, session journal.SessionID, path string) error {
	return k.withFamily(ctx, op, session, func(e catalog.Entry, f *family) error {
		if len(f.missing) > 0 {
			return lostAncestor(e, f.missing[0])
		}
		b, err := newWhole(path, k.hooks)
		if err != nil {
			return err
		}
		b.only = f.only
		if err := errors.Join(b.collect(ctx, e, f), b.close()); err != nil {
			return err
		}
		return k.hooks.SyncFile(path)
	})
}

// collect merges the files of a family.
func (b *builder) collect(ctx context.Context, e catalog.Entry, f *family) error {
	if err := b.strip(); err != nil {
		return err
	}
	for _, r := range f.ancestors {
		if err := b.unite(ctx, r.vouched, r.mode); err != nil {
			return err
		}
	}
	if f.own != nil {
		return b.finish(ctx, f.own.vouched, f.own.mode)
	}
	return b.c.Transact(func() error {
		e.Complete = true
		return errors.Join(b.w.identify(e, ""), b.noteKept())
	})
}
