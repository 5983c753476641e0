package rebuild

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// remains is what one file in stores/ records about itself and about its session's
// ancestors.
type remains struct {
	file  string            // in stores/
	keys  map[string]string // of the table store
	own   map[journal.Origin]uint64
	named map[journal.Origin]bool              // the origins of its session, including those without events
	line  map[journal.SessionID]*catalog.Entry // its session and ancestors, as far as it knows them
	wrote map[journal.SessionID]map[journal.Origin]uint64
}

// The versions of a store's schema that introduced what a rebuild reads.
const (
	versionOwn   = 2
	versionWrote = 3
)

func (r *remains) session() journal.SessionID { return journal.SessionID(r.keys["session"]) }

func (r *remains) has(key string) bool {
	_, ok := r.keys[key]
	return ok
}

// written returns how much the session has written to the file. The number only grows.
func (r *remains) written() (n uint64) {
	for _, highest := range r.own {
		n += highest
	}
	return n
}

// succeeds reports whether the session has continued in the file after it was last in
// another one. Additional content of the other file was undone by a power loss, or
// pruned.
func (r *remains) succeeds(other *remains) bool {
	if r.later(other) || other.later(r) {
		return !other.later(r)
	}
	return r.ahead(other) && !other.ahead(r)
}

// later reports whether the session was opened, and written to, in the file since it was
// in another one. Then the other one lacks an origin.
func (r *remains) later(other *remains) bool {
	for origin := range r.named {
		if !other.named[origin] {
			return true
		}
	}
	return false
}

// covers reports whether the file has all that the session has written to another
// one.
func (r *remains) covers(other *remains) bool { return !exceeds(other.own, r.own) }

// pruned returns the time before which the file may lack history.
func (r *remains) pruned() int64 {
	at, _ := strconv.ParseInt(r.keys[storefile.Pruned], 10, 64)
	return at
}

// ahead reports whether the session has written to the file since it wrote to another
// one, which may lack origins that are pruned completely.
func (r *remains) ahead(other *remains) bool {
	for origin, highest := range r.own {
		last, there := other.own[origin]
		if highest > last && (there || other.pruned() == 0) {
			return true
		}
	}
	return false
}

// exceeds reports whether a has an event that b has not.
func exceeds(a, b map[journal.Origin]uint64) bool {
	for origin, highest := range a {
		if highest > b[origin] {
			return true
		}
	}
	return false
}

// endedWith returns the sessions that were ended by the cut that made the file's session,
// with what each wrote. The file must be unused.
func (r *remains) endedWith() map[journal.SessionID]map[journal.Origin]uint64 {
	if !r.has(storefile.Ended) {
		return r.wrote
	}
	out := map[journal.SessionID]map[journal.Origin]uint64{}
	for s := range strings.FieldsSeq(r.keys[storefile.Ended]) {
		out[journal.SessionID(s)] = r.wrote[journal.SessionID(s)]
	}
	return out
}

// needs returns the sessions whose files are needed beside the file, if it is incomplete.
func (r *remains) needs(e *catalog.Entry) (needs []journal.SessionID) {
	if !r.has(storefile.Needs) {
		return stored(e.Parents)
	}
	for s := range strings.FieldsSeq(r.keys[storefile.Needs]) {
		needs = append(needs, journal.SessionID(s))
	}
	return needs
}

// stored returns the parents that had a store.
func stored(parents []journal.SessionID) []journal.SessionID {
	return slices.DeleteFunc(slices.Clone(parents), func(p journal.SessionID) bool { return p == storefile.VolatileParent })
}

// sessionInName returns the session that a file's name begins with.
func sessionInName(file string) journal.SessionID {
	session, _, _ := strings.Cut(file, ".")
	return journal.SessionID(session)
}

// readAll reads every file in stores/. It lists the files that cannot be read.
func readAll(ctx context.Context, dir string) (found []*remains, unreadable []FileProblem, err error) {
	stores := filepath.Join(dir, files.Stores)
	listed, err := files.ReadStores(dir)
	if err != nil {
		return nil, nil, err
	}
	visitor := sqlite.NewVisitor()
	defer visitor.Leave()
	for _, f := range listed {
		if !strings.HasSuffix(f.Name(), files.StoreSuffix) || f.IsDir() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		path := filepath.Join(stores, f.Name())
		r, err := read(ctx, visitor, path)
		if err != nil {
			unreadable = append(unreadable, FileProblem{path, catalog.Error("rebuild", path, err)})
			continue
		}
		found = append(found, r)
	}
	return found, unreadable, nil
}

// read reads one file.
func read(ctx context.Context, v *sqlite.Visitor, path string) (r *remains, err error) {
	c, version, err := v.Open(ctx, storefile.Schema, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
	}()
	r = &remains{
		file: filepath.Base(path), keys: map[string]string{},
		line: map[journal.SessionID]*catalog.Entry{}, wrote: map[journal.SessionID]map[journal.Origin]uint64{},
	}
	err = c.QueryWithin(ctx, "SELECT key, value FROM store", nil, func(v []driver.Value) error {
		r.keys[sqlite.TextIn(v[0])] = sqlite.TextIn(v[1])
		return nil
	})
	if err == nil {
		err = storefile.PlainIDs(append(strings.Fields(r.keys[storefile.Needs]), r.keys["session"])...)
	}
	if err == nil && version >= versionOwn {
		r.own, err = storefile.OwnHighest(ctx, c)
	}
	if err == nil && version >= versionOwn {
		err = r.readNamed(ctx, c)
	}
	if err == nil {
		err = r.readLine(ctx, c, version)
	}
	if err == nil && version >= versionWrote {
		err = r.readWrote(ctx, c)
	}
	r.describe()
	return r, err
}

// readNamed reads the origins under which the session has written, including those
// without remaining events.
func (r *remains) readNamed(ctx context.Context, c *sqlite.Conn) error {
	r.named = map[journal.Origin]bool{}
	return c.QueryWithin(ctx, "SELECT uuid FROM own", nil, func(v []driver.Value) error {
		if uuid, _ := v[0].([]byte); len(uuid) == len(journal.Origin{}) {
			r.named[journal.Origin(uuid)] = true
		}
		return nil
	})
}

// readLine reads the lineage.
func (r *remains) readLine(ctx context.Context, c *sqlite.Conn, version int64) error {
	more := "0, '', '', NULL"
	if version >= versionWrote {
		more = "coalesce(born, 0), coalesce(durability, ''), coalesce(cut, ''), kind"
	}
	return c.QueryWithin(ctx, "SELECT session, coalesce(parent, ''), graph, created, merged_at, split_at, "+more+" FROM ancestor ORDER BY session, ordinal", nil,
		func(v []driver.Value) error {
			if err := storefile.PlainIDs(sqlite.TextIn(v[0]), sqlite.TextIn(v[1])); err != nil {
				return err
			}
			session := journal.SessionID(sqlite.TextIn(v[0]))
			e := r.line[session]
			if e == nil {
				e = &catalog.Entry{}
				r.line[session] = e
			}
			if p := sqlite.TextIn(v[1]); p != "" {
				e.Parents = append(e.Parents, journal.SessionID(p))
			}
			e.Session, e.Graph = session, journal.GraphID(sqlite.TextIn(v[2]))
			e.Created, e.MergedAt, e.SplitAt = sqlite.NumberIn(v[3]), sqlite.NumberIn(v[4]), sqlite.NumberIn(v[5])
			e.Born, e.Cut, e.Kind = uint64(sqlite.NumberIn(v[6])), sqlite.TextIn(v[8]), journal.CutKind(sqlite.TextIn(v[9]))
			e.Durability, _ = journal.ParseDurability(sqlite.TextIn(v[7]))
			if v[9] == nil {
				e.Kind = kindUnknown
			}
			return nil
		})
}

// kindUnknown stands for the kind of the cut that made a session, if only files of older
// versions are left of it. Such files record only when the session came out of a merge or
// a split.
const kindUnknown = "untold"

// guessCut gives an entry whose cut is not known a cut of its own.
func guessCut(e *catalog.Entry) {
	if e.Kind != kindUnknown {
		return
	}
	if e.Kind = kindByTimes(e); e.Kind != "" {
		e.Cut = string(e.Session)
	}
}

// kindByTimes returns the kind of the cut that a session must have come out of.
func kindByTimes(e *catalog.Entry) journal.CutKind {
	switch {
	case len(e.Parents) == 0:
		return ""
	case e.MergedAt != 0 && e.SplitAt == 0:
		return journal.CutMerge
	case e.MergedAt == 0 && e.SplitAt != 0:
		return journal.CutSplit
	}
	return journal.CutRearrange
}

func (r *remains) readWrote(ctx context.Context, c *sqlite.Conn) error {
	return c.QueryWithin(ctx, "SELECT session, uuid, highest FROM wrote", nil, func(v []driver.Value) error {
		session := journal.SessionID(sqlite.TextIn(v[0]))
		uuid, _ := v[1].([]byte)
		if len(uuid) != len(journal.Origin{}) {
			return nil
		}
		if r.wrote[session] == nil {
			r.wrote[session] = map[journal.Origin]uint64{}
		}
		r.wrote[session][journal.Origin(uuid)] = uint64(sqlite.NumberIn(v[2]))
		return nil
	})
}

// describe completes the lineage's record of the file's own session. Every version of a
// file records more about that session than its lineage has.
func (r *remains) describe() {
	e := r.line[r.session()]
	if e == nil {
		if r.session() == "" {
			return
		}
		e = &catalog.Entry{}
		r.line[r.session()] = e
	}
	e.Session, e.Graph = r.session(), journal.GraphID(r.keys["graph"])
	e.Born, _ = strconv.ParseUint(r.keys["born"], 10, 64)
	e.Created, _ = strconv.ParseInt(r.keys["created"], 10, 64)
	e.Durability, _ = journal.ParseDurability(r.keys["durability"])
	e.Cut, e.Kind = r.keys["cut"], journal.CutKind(r.keys["kind"])
	if e.Cut != "" && e.Kind == "" { // the first version did not record it
		e.Kind = kindByTimes(e)
	}
}
