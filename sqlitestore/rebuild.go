package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// RebuildReport is what [Rebuild] has found.
type RebuildReport = rebuild.Report

// FileProblem is a file and what is wrong with it.
type FileProblem = rebuild.FileProblem

// Rebuild makes a new catalogue in place of a lost or damaged one, from what the stores record
// about themselves. The stores are left unchanged, and the remains of the old catalogue are kept
// beside the new one. Rebuild returns the code not_found for a directory without stores,
// unavailable while a process has it open, and conflict when nothing is wrong with the
// catalogue.
//
// The metadata of sessions whose files had been removed is lost: only the catalogue had
// it.
func Rebuild(ctx context.Context, dir string) (RebuildReport, error) {
	return rebuildWith(ctx, dir, failpoint.Hooks{})
}

func rebuildWith(ctx context.Context, dir string, h failpoint.Hooks) (report RebuildReport, err error) {
	if err := sqlite.CheckVersion(); err != nil {
		return report, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return report, storageError("rebuild", dir, err)
	}
	if n, err := countStores(dir); err != nil || n == 0 {
		return report, errors.Join(err, nothingToRebuild(dir))
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, storageError("rebuild", lock.Path(), lock.Close())) }()
	return rebuild.Remake(ctx, dir, h)
}

func nothingToRebuild(dir string) error {
	return &abi.Error{
		Code: abi.NotFound, Op: "rebuild", Message: dir + " has no session stores", Remedy: "name the directory that was given to --session",
		IDs: map[string]string{"path": dir},
	}
}
