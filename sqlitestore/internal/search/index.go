package search

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Name is the name of the index file of a session directory, which records the words of
// events. A program with another library of SQLite uses another of the [Names], since the
// libraries cannot share an index.
var Name = words.name

// Names are the names of the index files of all libraries.
var Names = []string{indexes[4].name, indexes[5].name}

const (
	ownApplication = 0x54455258 // "TERX"
	ownVersion     = 3
)

// schema is the layout of an index. An index of another layout is replaced rather than
// migrated: everything in it is also in the stores.
//
// Every event of the directory has a place, in the order in which it was read. Only the
// words are recorded, not the texts, which are read from the stores. The character % is a
// part of words, so that no text contains the words that stand for kinds, creatures and
// channels; see tagged. Places are listed from the end, as the newest are wanted first.
// A part of the places can be searched without reading how often the others have a word;
// see words.
var schema = `
CREATE TABLE progress (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	cursor TEXT NOT NULL,   -- of events: behind what is in the index
	next   INTEGER NOT NULL -- the place of the event behind that
);
INSERT INTO progress VALUES (1, 'start', 1);
CREATE TABLE origin (
	no      INTEGER PRIMARY KEY,
	uuid    BLOB NOT NULL UNIQUE,
	session TEXT NOT NULL -- that wrote under it
);
CREATE TABLE run (
	first  INTEGER PRIMARY KEY, -- the place of the first of some events in a row
	origin INTEGER NOT NULL,    -- of all of them
	seq    INTEGER NOT NULL     -- of the first
);
` + words.table + `;
PRAGMA user_version = 3;
`

// words are the statements about the words of events in a full-text index of SQLite.
var words = indexes[sqlite.FullText]

// indexes are those statements for each version of the full-text index.
var indexes = map[int]struct {
	name, table, insert, find, star string
	parts                           bool // each is searched by itself
}{
	// FTS4 records parts separately, as languages.
	4: {
		parts:  true,
		name:   "search.db",
		table:  `CREATE VIRTUAL TABLE word USING fts4 (content="", text, languageid="part", order=desc, matchinfo=fts3, tokenize=unicode61 "remove_diacritics=2" "tokenchars=%")`,
		insert: "INSERT INTO word (docid, part, text) VALUES (?, ?, ?)",
		find:   "SELECT docid FROM word WHERE word MATCH ? AND part = ? AND docid < ? ORDER BY docid DESC",
		star:   `*"`,
	},
	// FTS5 begins at the newest by itself.
	5: {
		name:   "search5.db",
		table:  `CREATE VIRTUAL TABLE word USING fts5 (text, content='', tokenize="unicode61 remove_diacritics 2 tokenchars '%'")`,
		insert: "INSERT INTO word (rowid, text) VALUES (?1, ?3)",
		find:   "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid < ?3 ORDER BY rowid DESC",
		star:   `" *`,
	},
}

// index is an open index. It is used by one goroutine; others, and other processes, may
// have it open as well.
type index struct {
	c       *sqlite.Conn
	cursor  journal.EventCursor // of the transaction that last read or wrote it
	next    int64
	origins map[journal.Origin]int64
	insert  *sqlite.Statement
}

// openIndex opens an index, and makes it if it may be written to and does not exist.
func openIndex(ctx context.Context, path string, mode sqlite.Mode) (*index, error) {
	if mode == sqlite.ReadWrite {
		mode = sqlite.Create
	}
	if err := Refuse(path); err != nil {
		return nil, err
	}
	c, err := sqlite.Open(path, mode)
	if err != nil {
		return nil, err
	}
	ix := newIndex(c)
	err = c.Exec("PRAGMA synchronous = NORMAL")
	if err == nil {
		err = ix.prepare(ctx, mode != sqlite.Create)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return ix, nil
}

// Refuse returns an error if a directory, or anything else that is not a file, is in the
// place of an index.
func Refuse(path string) error {
	_, err := files.Stat(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var unfit *abi.Error
	if !errors.As(err, &unfit) {
		return explained(path, err)
	}
	return noIndex(path, unfit.Message)
}

// noIndex is the error for something else in the place of an index.
func noIndex(path, why string) error {
	return &abi.Error{
		Code: abi.Storage, Op: "search", Message: why + ", so searching reads the stores, which takes longer",
		Remedy: "rename the file, and a new index is made automatically; the file has been left as it is", IDs: map[string]string{"path": path},
	}
}

func newIndex(c *sqlite.Conn) *index {
	return &index{c: c, origins: map[journal.Origin]int64{}, insert: sqlite.NewStatement(c, words.insert)}
}

// temporaryIndex makes an index of the events after a cursor, which is removed when it
// is closed. It is kept in memory as long as it is small.
func temporaryIndex(ctx context.Context, after journal.EventCursor) (*index, error) {
	c, err := sqlite.Temporary()
	if err != nil {
		return nil, err
	}
	ix := newIndex(c)
	if err := errors.Join(c.Exec("PRAGMA journal_mode = MEMORY"), c.Exec("PRAGMA synchronous = OFF"), ix.prepare(ctx, false), c.Exec("UPDATE progress SET cursor = ?", string(after))); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return ix, nil
}

func (ix *index) close() error {
	return errors.Join(ix.insert.Close(), ix.c.Close())
}

// prepare checks that the file is an index, and makes one of an empty file.
func (ix *index) prepare(ctx context.Context, only bool) error {
	application, _, err := ix.c.IntegerWithin(ctx, "PRAGMA application_id")
	if err != nil {
		return err
	}
	version, _, err := ix.c.IntegerWithin(ctx, "PRAGMA user_version")
	if err != nil {
		return err
	}
	tables, _, err := ix.c.IntegerWithin(ctx, "SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case application != ownApplication && (application != 0 || tables > 0):
		return noIndex(ix.c.Path, ix.c.Path+" is a SQLite database of another application, not an index for searching")
	case version > ownVersion:
		return &abi.Error{
			Code: abi.Unsupported, Op: "search", Message: fmt.Sprintf("%s has version %d, and this program knows %d", ix.c.Path, version, ownVersion),
			Remedy: "use the newer program, or rename the file: a new index is made automatically", IDs: map[string]string{"path": ix.c.Path},
		}
	case version == ownVersion:
		return ix.verify(ctx)
	case only:
		return errNoIndex
	}
	if application == 0 {
		// The index would be refused if a killed process left a journal. (SQLite's defensive
		// mode does not allow turning the journal off.)
		if err := ix.c.Exec("PRAGMA journal_mode = MEMORY"); err != nil {
			return err
		}
	}
	if err := errors.Join(ix.c.Exec("PRAGMA journal_mode = WAL"), ix.c.Exec(fmt.Sprintf("PRAGMA application_id = %d", ownApplication))); err != nil {
		return err
	}
	return errors.Join(ix.reset(func() bool { return true }), ix.verify(ctx))
}

// indexLayouts are the layouts of an index. There is only the newest.
var indexLayouts sqlite.Layouts

// verify refuses an index whose layout is not that of an index.
func (ix *index) verify(ctx context.Context) error {
	wanted, err := indexLayouts.Of(ownVersion, func(c *sqlite.Conn) error { return c.Exec(schema) })
	if err != nil {
		return err
	}
	return wanted.Compare(ctx, ix.c, "an index for searching", true)
}

// errNoIndex says that there is no index yet.
var errNoIndex = errors.New("there is no index")

// reset empties the index, unless another process has done so by then.
func (ix *index) reset(done func() bool) error {
	ix.forget()
	return ix.c.Transact(func() error {
		if version, _, err := ix.c.Integer("PRAGMA user_version"); err != nil || version == ownVersion && ix.read() == nil && done() {
			return err
		}
		for _, table := range []string{"progress", "origin", "run", "word"} {
			if err := ix.c.Exec("DROP TABLE IF EXISTS " + table); err != nil {
				return err
			}
		}
		return ix.c.Exec(schema)
	})
}

// forget drops what is known of the content.
func (ix *index) forget() { ix.origins = map[journal.Origin]int64{} }

// maxPlace is far after all events that a directory can have. It is bounded because a
// search takes a moment for each part up to the last.
const maxPlace = 1 << 36

// read loads how far the index has come, within a transaction.
func (ix *index) read() error {
	return ix.c.Query("SELECT cursor, next FROM progress", nil, func(v []driver.Value) error {
		var cursor string
		err := sqlite.TakeRow(v, &cursor, &ix.next)
		ix.cursor = journal.EventCursor(cursor)
		if err == nil && (ix.next < 1 || ix.next > maxPlace) {
			err = sqlite.Malformed("the next place is %d, which no index can reach", ix.next)
		}
		return err
	})
}

// textEvent is an event as it goes into the index.
type textEvent struct {
	id      journal.EventID
	session journal.SessionID
	text    string // with tags; "" if there is none
}

// errOvertaken says that another process has extended the index.
var errOvertaken = errors.New("the index has been extended by another process")

// add adds the events that were read after a cursor, and the next cursor, atomically. So
// each event is in the index once.
func (ix *index) add(after journal.EventCursor, events []textEvent, next journal.EventCursor, pace func()) error {
	err := ix.c.Transact(func() error {
		if err := ix.read(); err != nil {
			return err
		}
		if ix.cursor != after {
			return errOvertaken
		}
		if err := ix.write(events, pace); err != nil {
			return err
		}
		return ix.c.Exec("UPDATE progress SET cursor = ?, next = ?", string(next), ix.next)
	})
	if err != nil {
		ix.forget() // numbers of origins may be of a change that was rolled back
	}
	return err
}

// paceEvery is the number of events after which the background checks whether other work
// should go first.
const paceEvery = 256

func (ix *index) write(events []textEvent, pace func()) error {
	var last journal.EventID
	for i := range events {
		if i%paceEvery == paceEvery-1 {
			pace()
		}
		e := &events[i]
		if e.id.Origin != last.Origin || e.id.Seq != last.Seq+1 {
			no, err := ix.number(e)
			if err != nil {
				return err
			}
			if err := ix.c.Exec("INSERT INTO run (first, origin, seq) VALUES (?, ?, ?)", ix.next, no, int64(e.id.Seq)); err != nil {
				return err
			}
		}
		if e.text != "" {
			if err := ix.insert.Values(ix.next, partOf(ix.next), e.text); err != nil {
				return err
			}
		}
		last = e.id
		ix.next++
	}
	return nil
}

// number returns the number of an event's origin.
func (ix *index) number(e *textEvent) (int64, error) {
	if no, known := ix.origins[e.id.Origin]; known {
		return no, nil
	}
	uuid := e.id.Origin[:]
	if err := ix.c.Exec("INSERT OR IGNORE INTO origin (uuid, session) VALUES (?, ?)", uuid, string(e.session)); err != nil {
		return 0, err
	}
	no, _, err := ix.c.Integer("SELECT no FROM origin WHERE uuid = ?", uuid)
	ix.origins[e.id.Origin] = no
	return no, err
}

// explained explains an SQLite error on an index in plain words.
func explained(path string, err error) error { return sqlite.Explained("search", path, err, "") }

// Trim empties an index if more than half of it is about pruned events; there returns how
// many events exist. The index is then made again from the stores.
func Trim(ctx context.Context, path string, there func() (int64, error)) error {
	ix, err := openIndex(ctx, path, sqlite.ReadWrite)
	if err != nil {
		return explained(path, err)
	}
	err = ix.read()
	var most int64
	if err == nil && ix.next > batchEvents { // otherwise it is not worth reading every store
		most, err = there()
	}
	if err == nil && ix.next > 2*most+batchEvents {
		if err = ix.reset(func() bool { return false }); err == nil {
			_ = ix.c.Exec("VACUUM") // unless a reader prevents it; then it shrinks another time
		}
	}
	return explained(path, errors.Join(err, ix.close()))
}
