package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// Adopt makes a session directory of a session's file that stands alone, as
// [Exporter] writes it. The file is copied and stays as it is. Whoever goes on
// with it forks the session, so that it has an id of its own. The copy of a file
// that an older version has written is brought up to date. The directory must not
// exist, or be empty, and has its name when it is whole.
func Adopt(ctx context.Context, file, dir string) error { return adopt(ctx, file, dir, hooks{}) }

// AdoptAside is [Adopt] for as long as one looks at the session: the directory is among
// the temporary files, and leave removes it. What processes that were killed before
// they left have not removed goes as well.
func AdoptAside(ctx context.Context, file string) (dir string, leave func() error, err error) {
	place := filepath.Join(os.TempDir(), "terrarium-adopt")
	if err := clearAsides(place, hooks{}); err != nil {
		return "", nil, unwritable("adopt", place, err)
	}
	a, err := setAside(place, hooks{})
	if err != nil {
		return "", nil, unwritable("adopt", place, err)
	}
	dir = filepath.Join(a.dir, "session")
	if err := Adopt(ctx, file, dir); err != nil {
		return "", nil, errors.Join(err, a.remove())
	}
	return dir, a.remove, nil
}

func adopt(ctx context.Context, file, dir string, h hooks) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return storageError("adopt", dir, err)
	}
	to := destination{"adopt", path, h}
	if err := to.clear(true); err != nil {
		return err
	}
	if !strings.HasSuffix(file, storeSuffix) && missing(file) {
		return unadoptable(file, os.ErrNotExist)
	}
	named := file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // a link that the caller has named may lead to it
	}
	visitor := newVisitor()
	defer visitor.leave()
	mode, err := visitor.visit(ctx, file)
	if err == nil {
		_, err = storeSchema.age(ctx, file, mode)
	}
	if err != nil {
		return unadoptable(named, err)
	}
	return to.makeDirectory(func(dir string) error {
		if err := files.MakeStores(dir); err != nil {
			return err
		}
		if err := fillAdopted(ctx, file, mode, dir, h); err != nil {
			return unadoptable(named, err)
		}
		return nil
	})
}

// fillAdopted gives a directory the copy of a file, and a catalogue for it.
func fillAdopted(ctx context.Context, file string, mode fileMode, dir string, h hooks) error {
	stores := filepath.Join(dir, storesName)
	adopted := filepath.Join(stores, "adopted"+storeSuffix)
	if err := copyDatabase(ctx, file, mode, adopted); err != nil {
		return err
	}
	if err := storeSchema.renew(ctx, adopted); err != nil {
		return err
	}
	if err := errors.Join(h.syncFile(adopted), h.syncDirectory(stores)); err != nil {
		return err
	}
	report, err := remake(ctx, dir, h)
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
		Code: abi.InvalidArgument, Op: "adopt", Message: fmt.Sprintf("%s is not the file of a session that could go on", file),
		Remedy: "name a file that session export has written of a live session", IDs: map[string]string{"path": file}, Err: err,
	}
}

// copyDatabase writes what a database holds, with what its write-ahead log has, to
// a new file.
func copyDatabase(ctx context.Context, from string, mode fileMode, to string) error {
	c, err := openConn(from, mode)
	if err != nil {
		return err
	}
	err = c.execWithin(ctx, "VACUUM INTO '"+strings.ReplaceAll(to, "'", "''")+"'")
	return errors.Join(err, c.close())
}
