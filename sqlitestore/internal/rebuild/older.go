package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// A catalogue whose write-ahead log is lost or damaged is an older catalogue: SQLite
// takes the rest for the whole. The stores can show that it is older. Before a store is
// written to, the catalogue durably has its session, and the move of the session to that
// store. So there is a file that was written to and that an older catalogue does not know.

// proof is a file that proves a catalogue older than the file, and why.
type proof struct{ file, why string }

// stranger is a regular file in stores/ that the catalogue does not know, or that is
// being made.
type stranger struct {
	path    string
	remains *remains
	err     error             // why it cannot be read
	making  journal.SessionID // the session whose whole file it will be
}

// strangersOf lists these files. It only reads.
func strangersOf(ctx context.Context, k *catalog.Catalog) (out []stranger, err error) {
	known, err := k.Files(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(k.Dir(), files.Stores)
	present, err := files.ReadStores(k.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	begun, err := k.Hydrations(ctx)
	if err != nil {
		return nil, err
	}
	making := map[string]journal.SessionID{}
	for _, y := range begun { // a file is finished before the catalogue names its session
		making[y.File] = y.Session
		delete(known, filepath.Join(dir, y.File))
	}
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	for _, f := range present {
		path := filepath.Join(dir, f.Name())
		if known[path] || !strings.HasSuffix(path, files.StoreSuffix) || !f.Type().IsRegular() {
			continue
		}
		s := stranger{path: path, making: making[f.Name()]}
		s.remains, s.err = read(ctx, visitor, path)
		out = append(out, s)
	}
	return out, nil
}

// older returns a proof that the catalogue is older than the stores, or nil. It only
// reads.
func older(ctx context.Context, k *catalog.Catalog, home string) (*proof, error) {
	sessions, err := k.BySession(ctx)
	if err != nil {
		return nil, err
	}
	found, err := strangersOf(ctx, k)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		r := s.remains
		if s.err != nil || r.session() == "" || r.has(storefile.Unused) {
			continue // another file, or nothing was ever acknowledged in it
		}
		if s.making != "" && r.session() != s.making {
			continue // it begins as the copy of another one
		}
		if why := r.outlives(ctx, sessions, home); why != "" {
			return &proof{r.file, why}, nil
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return forgotten(k, sessions)
}

// forgotten looks for a session that was acknowledged and that a catalogue does not have.
// If both the catalogue and the store are damaged, the store may not show that. If the
// machine has been restarted since, both may have lost the session without damage.
func forgotten(k *catalog.Catalog, sessions map[journal.SessionID]catalog.Entry) (*proof, error) {
	acks, err := catalog.ReadAcks(k.Dir())
	if err != nil {
		return nil, err
	}
	for _, session := range slices.Sorted(maps.Keys(acks)) {
		a := acks[session]
		if _, known := sessions[session]; !known && a.Seq > 0 && !a.Excused(journal.Normal) {
			said := journal.EventID{Origin: a.Origin, Seq: a.Seq}
			return &proof{catalog.AcknowledgedName, fmt.Sprintf("session %s was acknowledged up to the event %s, and the catalogue does not have it", session, said)}, nil
		}
	}
	return nil, nil
}

// outlives returns why a file that a catalogue does not know must be younger than the
// catalogue's sessions, or "" if it may be older. home is the name of the catalogue's
// directory; see [catalog.Catalog.Home].
func (r *remains) outlives(ctx context.Context, sessions map[journal.SessionID]catalog.Entry, home string) string {
	session := r.session()
	if e, there := sessions[session]; there {
		if e.File != "" && (files.Missing(e.Path) || storefile.Says(ctx, e.Path, storefile.Moved, r.file)) {
			return fmt.Sprintf("session %s continued in it, and not in %s", session, e.File)
		}
		return ""
	}
	for ancestor := range r.line {
		if e, there := sessions[ancestor]; there && e.Live && ancestor != session {
			return fmt.Sprintf("it belongs to session %s, which came out of %s, and the catalogue still lists %[2]s as live", session, ancestor)
		}
	}
	for ended := range r.wrote {
		if e, there := sessions[ended]; there && e.Live {
			return fmt.Sprintf("it belongs to session %s, which was made when %s ended, and the catalogue still lists %[2]s as live", session, ended)
		}
	}
	if len(sessions) == 0 || home != "" && r.keys[storefile.Home] == home {
		return fmt.Sprintf("it belongs to session %s, which the catalogue does not have", session)
	}
	return ""
}

// RefuseOlder refuses an older catalogue, before stores that it does not know are taken
// for leftovers, and before its sessions are presented as complete. It is for the owner
// of the directory.
func RefuseOlder(ctx context.Context, k *catalog.Catalog) error {
	home, err := k.Home(ctx)
	if err != nil {
		return err
	}
	p, err := older(ctx, k, home)
	if err != nil || p == nil {
		return err
	}
	return tooOld(k, p)
}

// RefuseOlderToReaders is [RefuseOlder] for readers that do not own the directory. If the
// catalogue changes meanwhile, nothing is refused: the files of one moment do not match
// the rows of another, and the owner of the directory has made this check.
func RefuseOlderToReaders(ctx context.Context, k *catalog.Catalog) error {
	var found error
	still, err := k.Unchanged(ctx, func() error {
		found = RefuseOlder(ctx, k)
		return nil
	})
	if err == nil && still {
		err = found
	}
	return err
}

func tooOld(k *catalog.Catalog, p *proof) error {
	dir := k.Dir()
	path := pathOf(dir, p.file)
	if p.file == catalog.AcknowledgedName {
		path = filepath.Join(dir, catalog.AcknowledgedName)
	}
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is older than the stores, because %s-wal is lost or damaged, or only the catalogue was restored from a backup; %s proves this, because %s", k.Path(), catalog.Name, path, p.why),
		Remedy:  "all files have been left as they are; " + catalog.RebuildRemedy(dir),
		IDs:     map[string]string{"path": k.Path(), "store": path},
	}
}
