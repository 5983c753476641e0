package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// remains is what one file in stores/ says of itself and of its session's
// ancestors.
type remains struct {
	file  string            // in stores/
	keys  map[string]string // of the table store
	own   map[journal.Origin]uint64
	named map[journal.Origin]bool      // the origins of its session, also those without events
	line  map[journal.SessionID]*entry // its session and ancestors, as far as it knows them
	wrote map[journal.SessionID]map[journal.Origin]uint64
}

// The versions of a store's schema that brought what a rebuild reads.
const (
	versionOwn   = 2
	versionWrote = 3
)

func (r *remains) session() journal.SessionID { return journal.SessionID(r.keys["session"]) }

func (r *remains) has(key string) bool {
	_, ok := r.keys[key]
	return ok
}

// written says how much the session has written to the file. It only grows.
func (r *remains) written() (n uint64) {
	for _, highest := range r.own {
		n += highest
	}
	return n
}

// succeeds reports whether the session has gone on in the file after it was last in
// another one. What that has besides is what a power loss took back, or what was
// given up.
func (r *remains) succeeds(other *remains) bool {
	if r.later(other) || other.later(r) {
		return !other.later(r)
	}
	return r.ahead(other) && !other.ahead(r)
}

// later reports whether the session was opened, and written to, in the file since it
// was in another one, which lacks an origin then.
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

// pruned is the time before which the file need not have all of the history.
func (r *remains) pruned() int64 {
	at, _ := strconv.ParseInt(r.keys[prunedKey], 10, 64)
	return at
}

// ahead reports whether the session has written to the file since it wrote to
// another one. That may lack origins of which it has given up everything.
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

// sessionInName answers the session that a file's name begins with.
func sessionInName(file string) journal.SessionID {
	session, _, _ := strings.Cut(file, ".")
	return journal.SessionID(session)
}

// readRemains reads every file in stores/. What cannot be read is named.
func readRemains(ctx context.Context, dir string) (found []*remains, unreadable []FileProblem, err error) {
	stores := filepath.Join(dir, storesName)
	listed, err := files.ReadStores(dir)
	if err != nil {
		return nil, nil, err
	}
	visitor := newVisitor()
	defer visitor.leave()
	for _, f := range listed {
		if !strings.HasSuffix(f.Name(), storeSuffix) || f.IsDir() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		path := filepath.Join(stores, f.Name())
		r, err := visitor.remains(ctx, path)
		if err != nil {
			unreadable = append(unreadable, FileProblem{path, storageError("rebuild", path, err)})
			continue
		}
		found = append(found, r)
	}
	return found, unreadable, nil
}

// remains reads one file.
func (v *visitor) remains(ctx context.Context, path string) (r *remains, err error) {
	mode, err := v.visit(ctx, path)
	if err != nil {
		return nil, err
	}
	version, err := storeSchema.age(ctx, path, mode)
	if err != nil {
		return nil, err
	}
	c, err := openConn(path, mode)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := c.close(); err == nil {
			err = closeErr
		}
	}()
	r = &remains{
		file: filepath.Base(path), keys: map[string]string{},
		line: map[journal.SessionID]*entry{}, wrote: map[journal.SessionID]map[journal.Origin]uint64{},
	}
	err = c.queryWithin(ctx, "SELECT key, value FROM store", nil, func(v []driver.Value) error {
		r.keys[textIn(v[0])] = textIn(v[1])
		return nil
	})
	if err == nil {
		err = plainIDs(r.keys["session"])
	}
	if err == nil && version >= versionOwn {
		r.own, err = c.ownHighest(ctx)
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

// readNamed reads under which origins the session has written, also where nothing
// of that is left.
func (r *remains) readNamed(ctx context.Context, c *conn) error {
	r.named = map[journal.Origin]bool{}
	return c.queryWithin(ctx, "SELECT uuid FROM own", nil, func(v []driver.Value) error {
		if uuid, _ := v[0].([]byte); len(uuid) == len(journal.Origin{}) {
			r.named[journal.Origin(uuid)] = true
		}
		return nil
	})
}

// textIn and numberIn are the values of columns of files that nobody vouches for.
func textIn(v driver.Value) string {
	s, _ := v.(string)
	return s
}

func numberIn(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// readLine reads the lineage.
func (r *remains) readLine(ctx context.Context, c *conn, version int64) error {
	more := "0, '', '', NULL"
	if version >= versionWrote {
		more = "coalesce(born, 0), coalesce(durability, ''), coalesce(cut, ''), kind"
	}
	return c.queryWithin(ctx, "SELECT session, coalesce(parent, ''), graph, created, merged_at, split_at, "+more+" FROM ancestor ORDER BY session, ordinal", nil,
		func(v []driver.Value) error {
			if err := plainIDs(textIn(v[0]), textIn(v[1])); err != nil {
				return err
			}
			session := journal.SessionID(textIn(v[0]))
			e := r.line[session]
			if e == nil {
				e = &entry{}
				r.line[session] = e
			}
			if p := textIn(v[1]); p != "" {
				e.Parents = append(e.Parents, journal.SessionID(p))
			}
			e.Session, e.Graph = session, journal.GraphID(textIn(v[2]))
			e.Created, e.MergedAt, e.SplitAt = numberIn(v[3]), numberIn(v[4]), numberIn(v[5])
			e.born, e.cut, e.kind = uint64(numberIn(v[6])), textIn(v[8]), textIn(v[9])
			e.Durability, _ = journal.ParseDurability(textIn(v[7]))
			if v[9] == nil {
				e.kind = kindUntold
			}
			return nil
		})
}

// plainIDs refuses ids of sessions that could not be in the names of files.
func plainIDs(ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if _, err := files.NameOf(id); err != nil {
			return &cellError{fmt.Sprintf("%q cannot be the id of a session", shorten(id))}
		}
	}
	return nil
}

// kindUntold stands for the kind of a cut that made a session of which only files
// of older versions are left. They tell when it came out of a merge or a split.
const kindUntold = "untold"

// guessCut gives an entry whose cut nobody tells one of its own.
func (e *entry) guessCut() {
	if e.kind != kindUntold {
		return
	}
	if e.kind = e.kindByTimes(); e.kind != "" {
		e.cut = string(e.Session)
	}
}

// kindByTimes is the kind of the cut that a session must have come out of.
func (e *entry) kindByTimes() string {
	switch {
	case len(e.Parents) == 0:
		return ""
	case e.MergedAt != 0 && e.SplitAt == 0:
		return "merge"
	case e.MergedAt == 0 && e.SplitAt != 0:
		return "split"
	}
	return "rearrange"
}

func (r *remains) readWrote(ctx context.Context, c *conn) error {
	return c.queryWithin(ctx, "SELECT session, uuid, highest FROM wrote", nil, func(v []driver.Value) error {
		session := journal.SessionID(textIn(v[0]))
		uuid, _ := v[1].([]byte)
		if len(uuid) != len(journal.Origin{}) {
			return nil
		}
		if r.wrote[session] == nil {
			r.wrote[session] = map[journal.Origin]uint64{}
		}
		r.wrote[session][journal.Origin(uuid)] = uint64(numberIn(v[2]))
		return nil
	})
}

// describe completes what the lineage says of the file's own session, of which
// every version of a file says more.
func (r *remains) describe() {
	e := r.line[r.session()]
	if e == nil {
		if r.session() == "" {
			return
		}
		e = &entry{}
		r.line[r.session()] = e
	}
	e.Session, e.Graph = r.session(), journal.GraphID(r.keys["graph"])
	e.born, _ = strconv.ParseUint(r.keys["born"], 10, 64)
	e.Created, _ = strconv.ParseInt(r.keys["created"], 10, 64)
	e.Durability, _ = journal.ParseDurability(r.keys["durability"])
	e.cut, e.kind = r.keys["cut"], r.keys["kind"]
	if e.cut != "" && e.kind == "" { // the first version did not say
		e.kind = e.kindByTimes()
	}
}
