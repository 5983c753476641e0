package rebuild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// LeftOut names the files that may be stores that were in use but belong to no session:
// the catalogue was made without them, or does not know them although nothing proves that
// it is older. Creatures that a recipe had in them would start over without notice. Files
// of sessions that the catalogue has are not included. LeftOut only reads.
func LeftOut(ctx context.Context, k *catalog.Catalog) (problems map[string]error, err error) {
	problems = map[string]error{}
	still, err := k.Unchanged(ctx, func() error {
		sessions, err := k.BySession(ctx)
		if err != nil {
			return err
		}
		found, err := strangersOf(ctx, k)
		for _, s := range found {
			if why := s.lost(sessions); why != "" {
				problems[s.path] = leftOut(s.path, why, s.err)
			}
		}
		return err
	})
	if err != nil || !still { // an owner is at work, and has done this check
		return nil, err
	}
	return problems, nil
}

// lost returns why a file may be a store that no session has, or "" if nothing suggests
// that.
func (s *stranger) lost(sessions map[journal.SessionID]catalog.Entry) string {
	switch {
	case s.making != "" || files.Missing(s.path):
		return ""
	case sqlite.Busy(s.err):
		return "" // it is in use
	case s.err != nil:
		return "cannot be read"
	case s.remains.has(storefile.Unused):
		return ""
	case s.remains.session() == "":
		return "has nothing of its session in it, because its -wal file is missing or damaged"
	}
	if _, known := sessions[s.remains.session()]; known {
		return ""
	}
	return fmt.Sprintf("is the store of session %s", s.remains.session())
}

func leftOut(path, why string, cause error) error {
	dir := filepath.Dir(filepath.Dir(path))
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is not in the catalogue, and %s", path, why),
		Remedy: fmt.Sprintf("if the file is damaged, restore it; then rename %s, and make a new catalogue: terrarium session rebuild %s; if you continue without the file, it is kept as %s",
			catalog.Name, dir, filepath.Base(path)+files.OrphanSuffix),
		IDs: map[string]string{"path": path, journal.LeftOutID: filepath.Base(path)},
		Err: withoutRemedy(cause),
	}
}

// withoutRemedy returns an error without its own remedy: the remedy is the same for all
// causes.
func withoutRemedy(err error) error {
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return err
	}
	return errors.New(typed.Message)
}
