package catalog

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// query reads; see [sqlite.Conn.Query].
func (k *Catalog) query(ctx context.Context, query string, args []driver.Value, row func([]driver.Value) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.connection.ready(k.path); err != nil {
		return err
	}
	return k.connection.QueryWithin(ctx, query, args, row)
}

// integer returns the first column of the first row; see [sqlite.Conn.Integer].
func (k *Catalog) integer(ctx context.Context, query string, args ...driver.Value) (n int64, ok bool, err error) {
	err = k.query(ctx, query, args, func(v []driver.Value) error {
		n, ok = v[0].(int64)
		return nil
	})
	return n, ok, err
}

// Unchanged reports whether the catalogue stayed the same while look ran.
func (k *Catalog) Unchanged(ctx context.Context, look func() error) (bool, error) {
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

const entryFields = `s.session, s.graph, s.born, s.durability, s.live, s.complete, s.created, s.merged_at, s.split_at, coalesce(s.cut, ''),
	coalesce((SELECT kind FROM cut WHERE id = s.cut), ''), coalesce(s.file, ''), s.meta,
	(SELECT group_concat(parent, ' ') FROM (SELECT parent FROM parent p WHERE p.child = s.session ORDER BY p.ordinal))`

// selectEntries lists the entries that the end of a query chooses among the rows
// of store, named s.
func (k *Catalog) selectEntries(ctx context.Context, rest string, args ...driver.Value) (out []Entry, err error) {
	err = k.query(ctx, "SELECT "+entryFields+" FROM store s "+rest, args, func(v []driver.Value) error {
		e, err := k.scanEntry(v)
		out = append(out, e)
		return err
	})
	return out, err
}

func (k *Catalog) scanEntry(v []driver.Value) (Entry, error) {
	var session, graph, durability, meta string
	e := Entry{SessionInfo: journal.SessionInfo{Events: -1}}
	if err := sqlite.TakeRow(v, &session, &graph, &e.Born, &durability, &e.Live, &e.Complete, &e.Created, &e.MergedAt, &e.SplitAt, &e.Cut, (*string)(&e.Kind), &e.File, &meta); err != nil {
		return Entry{}, fmt.Errorf("session %v: %w", v[0], err)
	}
	if session == "" {
		return Entry{}, sqlite.Malformed("a session has no id")
	}
	if err := storefile.PlainIDs(session); err != nil {
		return Entry{}, err
	}
	e.Session, e.Graph = journal.SessionID(session), journal.GraphID(graph)
	var known bool
	if e.Durability, known = journal.ParseDurability(durability); !known {
		return Entry{}, sqlite.Malformed("session %s has the unknown durability %q", session, sqlite.Shorten(durability))
	}
	if e.File != "" {
		if err := k.storeName(fmt.Sprintf("store (session %s)", session), e.File); err != nil {
			return Entry{}, err
		}
		var err error
		if e.Path, err = k.FilePath(e.File); err != nil {
			return Entry{}, err
		}
	}
	if parents, _ := v[13].(string); parents != "" {
		for p := range strings.SplitSeq(parents, " ") {
			e.Parents = append(e.Parents, journal.SessionID(p))
		}
	}
	if e.Cut == "" && len(e.Parents) > 0 { // older versions recorded a fork as a split, without a cut
		e.Kind, e.SplitAt = KindFork, 0
	}
	e.MadeBy = e.Kind
	if err := json.Unmarshal([]byte(meta), &e.Meta); err != nil {
		return Entry{}, sqlite.Malformed("the metadata of session %s: %v", session, err)
	}
	return e, nil
}

// Entries lists sessions, oldest first.
func (k *Catalog) Entries(ctx context.Context) ([]Entry, error) {
	return k.selectEntries(ctx, "ORDER BY s.no")
}

// Described returns the ended sessions that the catalogue describes, with how many events
// the file of each has. For these, [Entry] has the metadata.
func (k *Catalog) Described(ctx context.Context) (map[journal.SessionID]int64, error) {
	out := map[journal.SessionID]int64{}
	return out, k.query(ctx, "SELECT session, events FROM store WHERE events IS NOT NULL AND file IS NOT NULL AND live = 0", nil, func(v []driver.Value) error {
		var session string
		var events int64
		err := sqlite.TakeRow(v, &session, &events)
		out[journal.SessionID(session)] = events
		return err
	})
}

// Undescribed returns the ended sessions that have a file and are not described.
func (k *Catalog) Undescribed(ctx context.Context) ([]Entry, error) {
	return k.selectEntries(ctx, "WHERE s.events IS NULL AND s.file IS NOT NULL AND s.live = 0 ORDER BY s.no")
}

// Entry returns the catalogue's entry of one session.
func (k *Catalog) Entry(ctx context.Context, op string, session journal.SessionID) (Entry, error) {
	entries, err := k.selectEntries(ctx, "WHERE s.session = ?", string(session))
	if err != nil {
		return Entry{}, Error(op, k.path, err)
	}
	if len(entries) == 0 {
		return Entry{}, NoSession(op, string(session))
	}
	return entries[0], nil
}

// BySession returns the entries of all sessions.
func (k *Catalog) BySession(ctx context.Context) (map[journal.SessionID]Entry, error) {
	entries, err := k.Entries(ctx)
	sessions := map[journal.SessionID]Entry{}
	for _, e := range entries {
		sessions[e.Session] = e
	}
	return sessions, err
}

// Files returns the paths of all files in the catalogue: files of sessions, files that are
// being made, and files that the hydrator will remove.
func (k *Catalog) Files(ctx context.Context) (map[string]bool, error) {
	known := map[string]bool{}
	know := func(file string) error {
		path, err := k.FilePath(file)
		known[path] = true
		return err
	}
	entries, err := k.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		known[e.Path] = true
	}
	begun, err := k.Hydrations(ctx)
	if err != nil {
		return nil, err
	}
	for _, y := range begun {
		if err := know(y.File); err != nil {
			return nil, err
		}
	}
	leftovers, err := k.Leftovers(ctx)
	for _, file := range leftovers {
		if err := know(file); err != nil {
			return nil, err
		}
	}
	return known, err
}

// FilePath returns the path of a file in the directory stores. Every path that is derived
// from the content of a file is made here, so that none leads elsewhere.
func (k *Catalog) FilePath(file string) (string, error) {
	name, err := nameOfStore(file)
	if err != nil {
		return "", Error("open", k.path, err)
	}
	return files.InStores(filepath.Dir(k.path), name), nil
}

// storeName checks the name of a file in stores/ from a row of the catalogue.
func (k *Catalog) storeName(row, text string) error {
	_, err := nameOfStore(text)
	if err == nil {
		return nil
	}
	return &abi.Error{
		Code: abi.Storage, Op: "open", Message: fmt.Sprintf("%s: the row %s names a file that cannot be a store: %q", k.path, row, sqlite.Shorten(text)),
		Remedy: "do not use the directory unless you know where it comes from; nothing has been changed. If it is yours, " + RebuildRemedy(filepath.Dir(k.path)),
		IDs:    map[string]string{"path": k.path},
	}
}

// nameOfStore checks a name of a file in stores/.
func nameOfStore(text string) (files.Name, error) {
	name, err := files.NameOf(text)
	if err == nil && !strings.HasSuffix(text, files.StoreSuffix) {
		err = sqlite.Malformed("%q does not end in %s", sqlite.Shorten(text), files.StoreSuffix)
	}
	return name, err
}

// NextFile returns a new name for a file of the session: its files are numbered.
func (k *Catalog) NextFile(e Entry) string {
	var n int
	rest := strings.TrimPrefix(e.File, string(e.Session)+".")
	if _, err := fmt.Sscanf(rest, "%d"+files.StoreSuffix, &n); err != nil {
		n = 1
	}
	return fmt.Sprintf("%s.%d%s", e.Session, n+1, files.StoreSuffix)
}

// Loose returns the cuts that may not be durable, the oldest first: their ids rise with
// time.
func (k *Catalog) Loose(ctx context.Context) (ids []string, err error) {
	err = k.query(ctx, "SELECT id FROM cut WHERE NOT firm ORDER BY id", nil, func(v []driver.Value) error {
		var id string
		err := sqlite.TakeRow(v, &id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Partakers returns the sessions that a cut has ended and those that it has made.
func (k *Catalog) Partakers(ctx context.Context, cut string) (parents, children []Entry, err error) {
	if parents, err = k.selectEntries(ctx, "WHERE s.ended_by = ?", cut); err != nil {
		return nil, nil, err
	}
	children, err = k.selectEntries(ctx, "WHERE s.cut = ?", cut)
	return parents, children, err
}

// Home returns a random name of the directory, which the stores that are made in it also
// record; "" if it has none yet.
func (k *Catalog) Home(ctx context.Context) (name string, err error) {
	_, named, err := k.integer(ctx, "SELECT 1 FROM sqlite_schema WHERE name = 'trait'") // not before version 4
	if err != nil || !named {
		return "", err
	}
	err = k.query(ctx, "SELECT value FROM trait WHERE key = ?", []driver.Value{storefile.Home}, func(v []driver.Value) error {
		name = sqlite.TextIn(v[0])
		return nil
	})
	return name, err
}

// RebuildRemedy returns the remedy for a directory without a usable catalogue.
func RebuildRemedy(dir string) string {
	return "rebuild the catalogue from the stores, which have everything that it had: terrarium session rebuild " + dir
}

// NoSession returns the error for a session that the catalogue does not have.
func NoSession(op, session string) *abi.Error {
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      op,
		Message: fmt.Sprintf("the directory has no session %q", session),
		Remedy:  "sessions lists them",
		IDs:     map[string]string{"session": session},
	}
}

// Acknowledged returns how far a session is known to have been acknowledged, by origin. It
// omits what the machine may have lost without damage.
func (k *Catalog) Acknowledged(ctx context.Context, e Entry) (map[journal.Origin]Ack, error) {
	marks := map[journal.Origin]Ack{}
	if !e.Live {
		return marks, nil
	}
	acks, err := ReadAcks(filepath.Dir(k.path))
	if err != nil {
		return nil, err
	}
	err = k.query(ctx, "SELECT uuid, highest, chain FROM mark WHERE session = ?", []driver.Value{string(e.Session)}, func(v []driver.Value) error {
		var a Ack
		var chain int64
		err := sqlite.TakeRow(v, (*[16]byte)(&a.Origin), &a.Seq, &chain)
		a.Chain = uint32(chain)
		marks[a.Origin] = a
		return err
	})
	if a, said := acks[e.Session]; said && !a.Excused(e.Durability) && a.Seq > marks[a.Origin].Seq {
		marks[a.Origin] = a
	}
	return marks, err
}

// Hydrations lists the files that are being made.
func (k *Catalog) Hydrations(ctx context.Context) (out []Hydration, err error) {
	err = k.query(ctx, "SELECT file, session, base, copied FROM hydration ORDER BY file", nil, func(v []driver.Value) error {
		y := Hydration{Begun: true}
		var session string
		err := sqlite.TakeRow(v, &y.File, &session, &y.Base, &y.Copied)
		if err == nil {
			err = k.storeName("hydration, column file", y.File)
		}
		if err == nil && y.Base != "" {
			err = k.storeName("hydration, column base", y.Base)
		}
		if err == nil && y.Copied < AllCopied {
			err = sqlite.Malformed("hydration of %s: a negative number of bytes has been copied", y.File)
		}
		y.Session = journal.SessionID(session)
		out = append(out, y)
		return err
	})
	return out, err
}

// Leftovers lists files that are to be removed.
func (k *Catalog) Leftovers(ctx context.Context) (files []string, err error) {
	err = k.query(ctx, "SELECT file FROM leftover ORDER BY file", nil, func(v []driver.Value) error {
		var file string
		err := sqlite.TakeRow(v, &file)
		if err == nil {
			err = k.storeName("leftover", file)
		}
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}
