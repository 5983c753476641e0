package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// family are the files that hold the history of a session: its own and, as long as it is
// incomplete, those of ancestors that it needs. Its methods may be called by any
// goroutine.
type family struct {
	own       *reader   // nil when the session's file has been removed
	ancestors []*reader // oldest first
	// only restricts the history to these origins; nil: no restriction. With it, the
	// history of a session whose file has been removed is read from the files of its
	// descendants.
	only map[journal.Origin]uint64
	// missing are ancestors whose files cannot be read.
	missing []journal.SessionID
	// holder is the session that the file or files belong to.
	holder catalog.Entry
	// lent is the loan of these files, if they belong to an open store.
	lent *loan
}

// openFamily opens the files of a session for reading. It returns errMoved if the session
// got other files meanwhile. With mayBorrow, they may be those of an open store.
func (k *sessions) openFamily(ctx context.Context, e catalog.Entry, mayBorrow bool) (*family, error) {
	f := &family{holder: e}
	if e.File == "" {
		var err error
		if f.holder, f.only, err = k.stand(ctx, e); err != nil {
			return nil, err
		}
		if mayBorrow {
			if lent := k.borrow(f.holder.Session); lent != nil {
				return &family{ancestors: lent.members(), only: f.only, missing: lent.missing, holder: f.holder, lent: lent}, nil
			}
		}
	}
	own, err := k.openMember(ctx, f.holder)
	switch {
	case err != nil && k.moved(ctx, f.holder):
		return nil, errMoved
	case err != nil:
		return nil, err
	case e.File == "":
		f.ancestors = append(f.ancestors, own)
	default:
		f.own = own
	}
	if err := k.openAncestors(ctx, f, f.holder); err != nil {
		return nil, errors.Join(err, f.close())
	}
	// Once a session has its whole file, the sessions that could supply what its first
	// file lacks may be removed.
	if !f.holder.Complete && k.moved(ctx, f.holder) {
		return nil, errors.Join(errMoved, f.close())
	}
	return f, nil
}

// borrow returns the files of a session that this process has open, or nil. An ended
// session is often read after its file has been removed. Its open successor may be read
// from many files, which then need not be opened again.
func (k *sessions) borrow(session journal.SessionID) *loan {
	if k.inUse == nil {
		return nil
	}
	s := k.inUse(session)
	if s == nil {
		return nil
	}
	l, _ := s.shelf.borrow()
	return l
}

// openOwn opens only the session's own file. If that has been removed, it does what
// openFamily does.
func (k *sessions) openOwn(ctx context.Context, e catalog.Entry, mayBorrow bool) (*family, error) {
	if e.File == "" {
		return k.openFamily(ctx, e, mayBorrow)
	}
	own, err := k.openMember(ctx, e)
	if err != nil && k.moved(ctx, e) {
		return nil, errMoved
	}
	return &family{holder: e, own: own}, err
}

// errMoved says that a session got its whole file while it was looked up.
var errMoved = errors.New("the session has another file now")

// stand finds the session that holds the history of one whose file has been removed.
func (k *sessions) stand(ctx context.Context, e catalog.Entry) (successor catalog.Entry, only map[journal.Origin]uint64, err error) {
	successor, found, err := k.Successor(ctx, e.Session)
	if err == nil && !found {
		err = catalog.NoSession("read", string(e.Session))
	}
	if err != nil {
		return catalog.Entry{}, nil, err
	}
	if err := k.refuseUnknown(ctx, e, successor); err != nil {
		return catalog.Entry{}, nil, err
	}
	only, err = k.Inherited(ctx, e.Session)
	return successor, only, err
}

// refuseUnknown refuses to read a history if the catalogue no longer knows which session
// wrote some of its events, as those would be missing.
func (k *sessions) refuseUnknown(ctx context.Context, e, successor catalog.Entry) error {
	unknown, err := k.LacksAuthors(ctx, e.Session)
	if err != nil || !unknown {
		return err
	}
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      "read",
		Message: fmt.Sprintf("it is no longer known which events session %s had: the catalogue that recorded them was lost", e.Session),
		Remedy:  fmt.Sprintf("read the history of %s, which has them all", successor.Session),
		IDs:     map[string]string{"session": string(e.Session), "successor": string(successor.Session)},
	}
}

// openAncestors adds the ancestors whose files have what the session's own file lacks.
func (k *sessions) openAncestors(ctx context.Context, f *family, e catalog.Entry) error {
	if e.Complete {
		return nil
	}
	needed, err := k.Needed(ctx, e.Session)
	if err != nil {
		return err
	}
	for _, p := range needed {
		r, err := k.openMember(ctx, p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && k.moved(ctx, p): // its history is in another file now, and not lost
			return errMoved
		case err != nil: // the rest can be read nevertheless
			f.missing = append(f.missing, p.Session)
		default:
			f.ancestors = append(f.ancestors, r)
		}
	}
	return nil
}

// openMember opens the file of one session.
func (k *sessions) openMember(ctx context.Context, e catalog.Entry) (*reader, error) {
	if e.File == "" {
		return nil, catalog.NoSession("read", string(e.Session))
	}
	c, err := k.read(ctx, e.Path)
	if err != nil {
		return nil, storageError("read", e.Path, err)
	}
	r, err := openReader(ctx, heldBy(e), c)
	return r, storageError("read", e.Path, err)
}

func (f *family) members() []*reader {
	if f.own == nil {
		return f.ancestors
	}
	return append([]*reader{f.own}, f.ancestors...)
}

// paths returns the paths of the files.
func (f *family) paths() (out []string) {
	for _, r := range f.members() {
		out = append(out, r.path)
	}
	return out
}

func (f *family) close() error {
	if f.lent != nil {
		f.lent.users.Done()
		return nil
	}
	var errs []error
	for _, r := range f.members() {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// familySnapshot is one snapshot of each file of a family.
type familySnapshot struct {
	family *family
	files  []*snapshot
	only   map[journal.Origin]uint64 // see family
}

// snapshot is a file as it was at a moment.
type snapshot struct {
	r  *reader
	tx *sql.Tx
}

// look begins to read. The content of frozen files does not change, so their snapshots
// fit together whenever they are taken.
func (f *family) look(ctx context.Context) (*familySnapshot, error) {
	v := &familySnapshot{family: f, only: f.only}
	for _, r := range f.members() {
		s, err := r.look(ctx)
		if err != nil {
			return nil, errors.Join(err, v.end())
		}
		v.files = append(v.files, s)
	}
	return v, nil
}

// look begins to read one file.
func (r *reader) look(ctx context.Context) (*snapshot, error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, storageError("read", r.path, err)
	}
	return &snapshot{r, tx}, nil
}

func (s *snapshot) end() error { return sqlite.EndRead(s.tx) }

// end ends reading.
func (v *familySnapshot) end() error {
	var errs []error
	for _, s := range v.files {
		errs = append(errs, s.end())
	}
	return errors.Join(errs...)
}

// byAge lists the files, the oldest first. If two files have the same events of an origin,
// the older one also has the changes that belong to them, because events are copied before
// changes.
func (v *familySnapshot) byAge() []*snapshot {
	return append(slices.Clone(v.files[1:]), v.files[0])
}

// spans lists the span of each origin. If several files have events of an origin, one of
// them has all events that the others have.
func (v *familySnapshot) spans(ctx context.Context) ([]span, error) {
	var out []span
	at := map[journal.Origin]int{}
	for _, file := range v.byAge() {
		spans, err := file.spans(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range spans {
			if _, wanted := v.only[s.origin]; !wanted && v.only != nil {
				continue
			}
			i, known := at[s.origin]
			switch {
			case !known:
				at[s.origin] = len(out)
				out = append(out, s)
			case s.high-s.low > out[i].high-out[i].low:
				out[i] = s
			}
		}
	}
	return out, nil
}

// count returns how many events the family has.
func (f *family) count(ctx context.Context) (n int64, err error) {
	counts, err := f.counts(ctx)
	for _, of := range counts {
		n += of
	}
	return n, err
}

// counts returns how many events each origin has. Numbers within an origin have no gaps,
// so two lookups per origin are enough.
func (f *family) counts(ctx context.Context) (out map[journal.Origin]int64, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	out = map[journal.Origin]int64{}
	for _, s := range spans {
		out[s.origin] = s.high - s.low + 1
	}
	return out, err
}

// lossy reports whether an ancestor's file lacks some of the values written to states, or
// cannot be read; see lossy.
func (f *family) lossy(ctx context.Context) (lossy bool, err error) {
	for _, r := range f.ancestors {
		err := sqlite.Each(ctx, r.db, func(func(...any) error) error { lossy = true; return nil },
			"SELECT 1 FROM store WHERE key = '"+storefile.Pruned+"' UNION ALL SELECT 1 FROM ancestor WHERE parent = '"+storefile.VolatileParent+"' LIMIT 1")
		if err != nil {
			return false, err
		}
	}
	return lossy || len(f.missing) > 0, nil
}

// readTries is how often a session is looked up again because a file of its
// family was removed between looking it up and reading it.
const readTries = 5

// withFamily opens the files of a session for a single use, which may take long. It does
// not borrow files from an open store, so that the store can be closed meanwhile.
func (k *sessions) withFamily(ctx context.Context, op string, session journal.SessionID, look func(e catalog.Entry, f *family) error) error {
	open := func(ctx context.Context, e catalog.Entry, _ bool) (*family, error) {
		return k.openFamily(ctx, e, false)
	}
	return k.withFiles(ctx, op, session, open, look)
}

// withFiles is withFamily with the files that open opens. While files are borrowed, the
// background cannot close the store that they belong to, so look must be short. Only the
// first attempt may borrow: an open store may still read from files that have been
// removed.
func (k *sessions) withFiles(ctx context.Context, op string, session journal.SessionID,
	open func(ctx context.Context, e catalog.Entry, mayBorrow bool) (*family, error), look func(e catalog.Entry, f *family) error) error {
	for try := 1; ; try++ {
		e, err := k.Entry(ctx, op, session)
		if err != nil {
			return err
		}
		attempt := func() error {
			f, err := open(ctx, e, try == 1)
			if err != nil {
				return err
			}
			lent := f.lent != nil
			err = f.vanished(errors.Join(look(e, f), f.close()))
			if err != nil && (k.moved(ctx, f.holder) || lent && sqlite.Failed(err)) {
				err = errMoved
			}
			return err
		}
		if k.room != nil {
			err = withRoom(k.room, noPaths, attempt)
		} else {
			err = attempt()
		}
		if try == readTries || !errors.Is(err, errMoved) {
			return storageError(op, e.Path, err)
		}
	}
}

// vanished replaces a read error by errMoved if a file has been removed since the family
// was opened: when an ancestor gets its whole history in another file, its first file is
// removed, and so are files that only it needed.
func (f *family) vanished(err error) error {
	if err != nil && slices.ContainsFunc(f.members(), func(r *reader) bool { return missing(r.path) }) {
		return errMoved
	}
	return err
}

// moved reports whether a session has got its whole file meanwhile, or its file
// has been removed.
func (k *sessions) moved(ctx context.Context, e catalog.Entry) bool {
	now, err := k.Entry(ctx, "read", e.Session)
	return err == nil && (now.File != e.File || now.Complete != e.Complete)
}
