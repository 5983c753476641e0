package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Adopt makes a session directory of a session's file that stands alone, as
// [Exporter] writes it. The file is copied and stays as it is. Whoever goes on
// with it forks the session, so that it has an id of its own. The copy of a file
// that an older version has written is brought up to date. The directory must not
// exist, or be empty.
func Adopt(ctx context.Context, file, dir string) error {
	if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
		return exists("adopt", dir)
	}
	if !strings.HasSuffix(file, storeSuffix) && missing(file) {
		return unadoptable(file, os.ErrNotExist)
	}
	visitor := newVisitor()
	defer visitor.leave()
	mode, err := visitor.visit(file)
	if err == nil {
		_, err = storeSchema.age(file, mode)
	}
	if err != nil {
		return unadoptable(file, err)
	}
	stores := filepath.Join(dir, storesName)
	if err := os.MkdirAll(stores, 0o755); err != nil {
		return unwritable("adopt", dir, err)
	}
	adopted := filepath.Join(stores, "adopted"+storeSuffix)
	if err := copyDatabase(file, mode, adopted); err != nil {
		return unadoptable(file, err)
	}
	if err := storeSchema.renew(ctx, adopted); err != nil {
		return unadoptable(file, err)
	}
	report, err := Rebuild(ctx, dir)
	if err == nil && len(report.Unreadable) > 0 {
		err = report.Unreadable[0].Err
	}
	if err == nil && len(report.Live) == 0 {
		err = errors.New("its session had ended")
	}
	if err != nil {
		return unadoptable(file, err)
	}
	return nil
}

func unadoptable(file string, err error) error {
	return &abi.Error{
		Code: abi.InvalidArgument, Op: "adopt", Message: fmt.Sprintf("%s is not the file of a session that could go on", file),
		Remedy: "name a file that session export has written of a live session", IDs: map[string]string{"path": file}, Err: err,
	}
}

// copyDatabase writes what a database holds, with what its write-ahead log has, to
// a new file.
func copyDatabase(from string, mode fileMode, to string) error {
	c, err := openConn(from, mode)
	if err != nil {
		return err
	}
	err = c.exec("VACUUM INTO '" + strings.ReplaceAll(to, "'", "''") + "'")
	return errors.Join(err, c.close())
}
