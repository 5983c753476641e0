package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// A catalogue whose write-ahead log is lost or damaged is an older one: SQLite takes
// what is left for all there is. The stores tell. Nothing is written to a store of which
// the catalogue does not have the session, or that the session was moved to, before the
// catalogue has that durably; so there is a file that was written to and that it does not
// know.

// proof is a file that shows that a catalogue is older than it, and why.
type proof struct{ file, why string }

// stranger is a regular file in stores/ that the catalogue does not know, or that is
// being made.
type stranger struct {
	path    string
	remains *remains
	err     error             // why it cannot be read
	making  journal.SessionID // whose whole file it is going to be
}

// strangers lists these files. It only reads.
func (k *catalog) strangers(ctx context.Context) (out []stranger, err error) {
	known, err := k.files(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(filepath.Dir(k.path), storesName)
	present, err := files.ReadStores(filepath.Dir(k.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	begun, err := k.hydrations(ctx)
	if err != nil {
		return nil, err
	}
	making := map[string]journal.SessionID{}
	for _, y := range begun { // a file is finished before the catalogue says whose it is
		making[y.file] = y.session
		delete(known, filepath.Join(dir, y.file))
	}
	visitor := newVisitor()
	defer visitor.leave()
	for _, f := range present {
		path := filepath.Join(dir, f.Name())
		if known[path] || !strings.HasSuffix(path, storeSuffix) || !f.Type().IsRegular() {
			continue
		}
		s := stranger{path: path, making: making[f.Name()]}
		s.remains, s.err = visitor.remains(ctx, path)
		out = append(out, s)
	}
	return out, nil
}

// bySession are the entries of all sessions.
func (k *catalog) bySession(ctx context.Context) (map[journal.SessionID]entry, error) {
	entries, err := k.entries(ctx)
	sessions := map[journal.SessionID]entry{}
	for _, e := range entries {
		sessions[e.Session] = e
	}
	return sessions, err
}

// older answers what proves the catalogue older than the stores, or nil. It only reads.
func (k *catalog) older(ctx context.Context, home string) (*proof, error) {
	sessions, err := k.bySession(ctx)
	if err != nil {
		return nil, err
	}
	found, err := k.strangers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		r := s.remains
		if s.err != nil || r.session() == "" || r.has(markUnused) {
			continue // of something else, or nothing was ever acknowledged in it
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
	return k.forgotten(sessions)
}

// forgotten looks for a session that was acknowledged and that a catalogue does not
// have: its store may have lost everything that says so, when both are damaged. A start of
// the machine since may have taken the session from both.
func (k *catalog) forgotten(sessions map[journal.SessionID]entry) (*proof, error) {
	acks, _, err := readAcks(filepath.Dir(k.path))
	if err != nil {
		return nil, err
	}
	for _, session := range slices.Sorted(maps.Keys(acks)) {
		a := acks[session]
		if _, known := sessions[session]; !known && a.seq > 0 && !a.excused(journal.Normal) {
			said := journal.EventID{Origin: a.origin, Seq: a.seq}
			return &proof{ackName, fmt.Sprintf("session %s was acknowledged up to the event %s, and the catalogue does not have it", session, said)}, nil
		}
	}
	return nil, nil
}

// outlives says why a file that a catalogue does not know is younger than what that
// says of sessions, or "" if it need not be. home is the directory that the catalogue
// is of.
func (r *remains) outlives(ctx context.Context, sessions map[journal.SessionID]entry, home string) string {
	session := r.session()
	if e, there := sessions[session]; there {
		if e.file != "" && (missing(e.Path) || says(ctx, e, markMoved, r.file)) {
			return fmt.Sprintf("session %s went on in it, and not in %s", session, e.file)
		}
		return ""
	}
	for ancestor := range r.line {
		if e, there := sessions[ancestor]; there && e.Live && ancestor != session {
			return fmt.Sprintf("it is of session %s, which came out of %s, and that is live in the catalogue", session, ancestor)
		}
	}
	for ended := range r.wrote {
		if e, there := sessions[ended]; there && e.Live {
			return fmt.Sprintf("it is of session %s, which came when %s ended, and that is live in the catalogue", session, ended)
		}
	}
	if len(sessions) == 0 || home != "" && r.keys[keyHome] == home {
		return fmt.Sprintf("it is of session %s, which the catalogue does not have", session)
	}
	return ""
}

// home is a random name of the directory, which the stores that are made in it have as
// well; "" if it has none yet.
func (k *catalog) home(ctx context.Context) (name string, err error) {
	_, named, err := k.integer(ctx, "SELECT 1 FROM sqlite_schema WHERE name = 'trait'") // not before version 4
	if err != nil || !named {
		return "", err
	}
	err = k.query(ctx, "SELECT value FROM trait WHERE key = ?", []driver.Value{keyHome}, func(v []driver.Value) error {
		name = textIn(v[0])
		return nil
	})
	return name, err
}

// nameHome is home of a directory that this process owns, which gets a name if it has
// none. That it has need not be durable: until it is, so is no store that tells of it.
func (k *catalog) nameHome(ctx context.Context) (string, error) {
	name, err := k.home(ctx)
	if err != nil || name != "" {
		return name, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ready(); err != nil {
		return "", err
	}
	return id.String(), k.c.exec("INSERT INTO trait (key, value) VALUES (?, ?)", keyHome, id.String())
}

// integer answers the first column of the first row; see [conn.integer].
func (k *catalog) integer(ctx context.Context, query string, args ...driver.Value) (n int64, ok bool, err error) {
	err = k.query(ctx, query, args, func(v []driver.Value) error {
		n, ok = v[0].(int64)
		return nil
	})
	return n, ok, err
}

// refuseOlder stops before stores are taken for leftovers that a catalogue has
// forgotten, and before its sessions are shown for all there are. It is for the owner of
// the directory.
func (k *catalog) refuseOlder(ctx context.Context) error {
	home, err := k.home(ctx)
	if err != nil {
		return err
	}
	p, err := k.older(ctx, home)
	if err != nil || p == nil {
		return err
	}
	return k.isOlder(p)
}

// refuseOlderToReaders is refuseOlder for those who do not own the directory. A catalogue
// that changes meanwhile has an owner, who has looked: the files of one moment do not
// match the rows of another.
func (k *catalog) refuseOlderToReaders(ctx context.Context) error {
	var found error
	still, err := k.unchanged(ctx, func() error {
		found = k.refuseOlder(ctx)
		return nil
	})
	if err == nil && still {
		err = found
	}
	return err
}

func (k *catalog) isOlder(p *proof) error {
	dir := filepath.Dir(k.path)
	path := pathOf(dir, p.file)
	if p.file == ackName {
		path = filepath.Join(dir, ackName)
	}
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is older than the stores, because %s-wal is lost or damaged, or it was put back from a backup by itself: %s proves it, as %s", k.path, catalogName, path, p.why),
		Remedy:  "all files have been left as they are; " + rebuildRemedy(dir),
		IDs:     map[string]string{"path": k.path, "store": path},
	}
}

// unchanged reports whether nobody has changed the catalogue while look ran.
func (k *catalog) unchanged(ctx context.Context, look func() error) (bool, error) {
	const version = "PRAGMA data_version"
	before, _, err := k.integer(ctx, version)
	if err == nil {
		err = look()
	}
	if err != nil {
		return false, err
	}
	now, _, err := k.integer(ctx, version)
	return now == before, err
}
