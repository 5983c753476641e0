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

// family are the files that hold the history of a session: its own and, as long
// as it is incomplete, those of ancestors that it needs. Its methods may be
// called by any goroutine.
type family struct {
	own       *reader   // nil when the session's file has been removed
	ancestors []*reader // eldest first
	// only restricts the history to these origins; nil: no restriction. So a
	// session whose file has been removed is read in those of its descendants.
	only map[journal.Origin]uint64
	// missing are ancestors whose files cannot be read.
	missing []journal.SessionID
	// holder is the session whose file, or family, it is.
	holder catalog.Entry
}

// openFamily opens the files of a session for reading. It answers errMoved when
// these are others meanwhile.
func (k *sessions) openFamily(ctx context.Context, e catalog.Entry, how access) (*family, error) {
	f := &family{holder: e}
	if e.File == "" {
		var err error
		if f.holder, f.only, err = k.stand(ctx, e); err != nil {
			return nil, err
		}
	}
	own, err := openMember(ctx, f.holder, how)
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
	if err := k.openAncestors(ctx, f, f.holder, how); err != nil {
		return nil, errors.Join(err, f.close())
	}
	// Once a session has its whole file, nobody is there any more to be asked for
	// what its first one lacks.
	if !f.holder.Complete && k.moved(ctx, f.holder) {
		return nil, errors.Join(errMoved, f.close())
	}
	return f, nil
}

// errMoved says that a session has got its whole file while it was looked up.
var errMoved = errors.New("the file of the session is another one now")

// stand finds who holds the history of a session whose file has been removed.
func (k *sessions) stand(ctx context.Context, e catalog.Entry) (heir catalog.Entry, only map[journal.Origin]uint64, err error) {
	heir, found, err := k.Heir(ctx, e.Session)
	if err == nil && !found {
		err = catalog.NoSession("read", string(e.Session))
	}
	if err != nil {
		return catalog.Entry{}, nil, err
	}
	if err := k.refuseUnknown(ctx, e, heir); err != nil {
		return catalog.Entry{}, nil, err
	}
	only, err = k.Inherited(ctx, e.Session)
	return heir, only, err
}

// refuseUnknown stops before the history of a session is told without the events
// of which the catalogue does not know any more who wrote them.
func (k *sessions) refuseUnknown(ctx context.Context, e, heir catalog.Entry) error {
	unknown, err := k.LacksAuthors(ctx, e.Session)
	if err != nil || !unknown {
		return err
	}
	return &abi.Error{
		Code:    abi.NotFound,
		Op:      "read",
		Message: fmt.Sprintf("which events session %s had is not known any more: the catalogue that knew was lost", e.Session),
		Remedy:  fmt.Sprintf("read the history of %s, which has them all", heir.Session),
		IDs:     map[string]string{"session": string(e.Session), "heir": string(heir.Session)},
	}
}

// openAncestors adds those whose files have what that of the session lacks.
func (k *sessions) openAncestors(ctx context.Context, f *family, e catalog.Entry, how access) error {
	if e.Complete {
		return nil
	}
	needed, err := k.Needed(ctx, e.Session)
	if err != nil {
		return err
	}
	for _, p := range needed {
		r, err := openMember(ctx, p, how)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && k.moved(ctx, p): // its history is in another file now, and not lost
			return errMoved
		case err != nil: // the rest can be read all the same
			f.missing = append(f.missing, p.Session)
		default:
			f.ancestors = append(f.ancestors, r)
		}
	}
	return nil
}

// openMember opens the file of one session.
func openMember(ctx context.Context, e catalog.Entry, how access) (*reader, error) {
	if e.File == "" {
		return nil, catalog.NoSession("read", string(e.Session))
	}
	c, err := how(ctx, e.Path)
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

func (f *family) close() error {
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

// look begins to read. What frozen files hold does not change, so their
// snapshots fit together whenever they are taken.
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

// spans lists what each origin has. Where several files have events of an
// origin, one has all that the others have.
func (v *familySnapshot) spans(ctx context.Context) ([]span, error) {
	var out []span
	at := map[journal.Origin]int{}
	for _, file := range v.files {
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

// count answers how many events there are.
func (f *family) count(ctx context.Context) (n int64, err error) {
	counts, err := f.counts(ctx)
	for _, of := range counts {
		n += of
	}
	return n, err
}

// counts answers how many events there are of each origin. Numbers within an origin
// have no gaps, so that it takes two look-ups per origin.
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

// lossy reports whether an ancestor's file lacks some of what was written to states, or
// cannot be asked; see lossy.
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

// withFamily opens the files of a session for one look.
func (k *sessions) withFamily(ctx context.Context, op string, session journal.SessionID, how access, look func(e catalog.Entry, f *family) error) error {
	for try := 1; ; try++ {
		e, err := k.Entry(ctx, op, session)
		if err != nil {
			return err
		}
		f, err := k.openFamily(ctx, e, how)
		if err == nil {
			err = f.vanished(errors.Join(look(e, f), f.close()))
			if err != nil && k.moved(ctx, f.holder) {
				err = errMoved
			}
		}
		if try == readTries || !errors.Is(err, errMoved) {
			return storageError(op, e.Path, err)
		}
	}
}

// vanished answers errMoved in place of an error with which reading has failed if a file
// has gone since the family was opened: when an ancestor has got its whole history in
// another, its first one goes, and those that only it needed.
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
