package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Adopt makes a session directory from a single session file, as [Directory.Export] writes it. The
// file is copied and stays unchanged. To continue the session, fork it, so that it gets an
// id of its own. If an older version has written the file, the copy is upgraded. The
// directory must not exist, or must be empty. It gets its name when it is complete.
func Adopt(ctx context.Context, file, dir string) error {
	return adopt(ctx, file, dir, failpoint.Hooks{})
}

// AdoptAside is [Adopt] for a caller that only reads the session: it makes a temporary
// directory, which leave removes. Temporary directories that killed processes have left
// are removed as well.
func AdoptAside(ctx context.Context, file string) (dir string, leave func() error, err error) {
	place := filepath.Join(os.TempDir(), "terrarium-adopt")
	if err := clearAsides(place, failpoint.Hooks{}); err != nil {
		return "", nil, unwritable("adopt", place, err)
	}
	a, err := setAside(place, failpoint.Hooks{})
	if err != nil {
		return "", nil, unwritable("adopt", place, err)
	}
	dir = filepath.Join(a.dir, "session")
	if err := Adopt(ctx, file, dir); err != nil {
		return "", nil, errors.Join(err, a.remove())
	}
	return dir, a.remove, nil
}

func adopt(ctx context.Context, file, dir string, h failpoint.Hooks) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return storageError("adopt", dir, err)
	}
	to := destination{"adopt", path, h}
	if err := to.clear(true); err != nil {
		return err
	}
	if !strings.HasSuffix(file, files.StoreSuffix) && missing(file) {
		return unadoptable(file, os.ErrNotExist)
	}
	named := file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // the caller has named the file, so a link may lead to it
	}
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	c, _, err := visitor.Open(ctx, storefile.Schema, file)
	if err != nil {
		return unadoptable(named, err)
	}
	return errors.Join(to.makeDirectory(func(dir string) error {
		if err := files.MakeStores(dir); err != nil {
			return err
		}
		if err := fillAdopted(ctx, c, dir, h); err != nil {
			return unadoptable(named, err)
		}
		return nil
	}), c.Close())
}

// fillAdopted copies a file into a directory, and makes a catalogue for the copy.
func fillAdopted(ctx context.Context, file *sqlite.Conn, dir string, h failpoint.Hooks) error {
	stores := filepath.Join(dir, files.Stores)
	adopted := filepath.Join(stores, "adopted"+files.StoreSuffix)
	if err := file.CopyTo(ctx, adopted); err != nil {
		return err
	}
	if err := storefile.Schema.Renew(ctx, adopted); err != nil {
		return err
	}
	if err := errors.Join(h.SyncFile(adopted), h.SyncDirectory(stores)); err != nil {
		return err
	}
	report, err := rebuild.Remake(ctx, dir, h)
	if err == nil && len(report.Unreadable) > 0 {
		err = report.Unreadable[0].Err
	}
	if err == nil && len(report.Live) == 0 {
		err = errors.New("its session had ended")
	}
	return err
}

func unadoptable(file string, err error) error {
	return &abi.Error{
		Code: abi.InvalidArgument, Op: "adopt", Message: fmt.Sprintf("%s is not the file of a session that can continue", file),
		Remedy: "name a file that session export wrote from a live session", IDs: map[string]string{"path": file}, Err: err,
	}
}
