package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// leftOut names the files that may be stores which were in use, and that no session
// has: the catalogue was made without them, or does not know them although nothing
// proves it older. What a recipe had in them would begin anew without a word. Copies of
// what the catalogue has are not among them. It only reads.
func (k *catalog) leftOut(ctx context.Context) (problems map[string]error, err error) {
	problems = map[string]error{}
	still, err := k.unchanged(ctx, func() error {
		sessions, err := k.bySession(ctx)
		if err != nil {
			return err
		}
		found, err := k.strangers(ctx)
		for _, s := range found {
			if why := s.lost(sessions); why != "" {
				problems[s.path] = leftOut(s.path, why, s.err)
			}
		}
		return err
	})
	if err != nil || !still { // an owner is at work, which has looked itself
		return nil, err
	}
	return problems, nil
}

// lost says why a file may be a store that no session has, or "" if it need not be.
func (s *stranger) lost(sessions map[journal.SessionID]entry) string {
	var se sqlite3.Error
	switch {
	case s.making != "" || missing(s.path):
		return ""
	case errors.As(s.err, &se) && (se.Code == sqlite3.ErrBusy || se.Code == sqlite3.ErrLocked):
		return "" // it is in use
	case s.err != nil:
		return "cannot be read"
	case s.remains.has(markUnused):
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
		Remedy: fmt.Sprintf("put it back as it was if it is damaged, give %s another name, and make that again: terrarium session rebuild %s; when the directory is gone on with, the file is kept as %s",
			catalogName, dir, filepath.Base(path)+orphanSuffix),
		IDs: map[string]string{"path": path, journal.LeftOutID: filepath.Base(path)},
		Err: withoutRemedy(cause),
	}
}

// withoutRemedy is an error without a remedy of its own: there is one for the whole.
func withoutRemedy(err error) error {
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return err
	}
	return errors.New(typed.Message)
}

// setLeftAside gives the files that were left out names under which they stay, when the
// directory is gone on with. Until then every start tells of them.
func (d *Directory) setLeftAside() error {
	for len(d.leftOut) > 0 {
		if err := setStoreAside(d.leftOut[0]); err != nil {
			return storageError("open", d.leftOut[0], err)
		}
		d.leftOut = d.leftOut[1:]
	}
	return nil
}
