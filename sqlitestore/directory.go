package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const (
	lockName = "lock"

	defaultQueueBytes = 8 << 20
)

// Options are the options of [Open]. The zero value has the defaults.
type Options struct {
	// MaxQueueBytes bounds the unwritten records that a store holds in memory; see
	// [Store.Room]. Default 8 MiB.
	MaxQueueBytes int64
	// Retain bounds the history of each store; by default all of it is kept.
	Retain Retention
	// MaxDiskBytes is a budget for the files of the directory; 0: none. While they exceed
	// it, old history is pruned, beginning with the largest stores. A history that would
	// exceed the budget once it is merged into one file is pruned while it is merged.
	// History that is still to be delivered is kept nevertheless; then [Directory.Problems]
	// reports that the budget is exceeded.
	MaxDiskBytes int64
	// SearchIndex keeps an index for [Directory.Search] up to date in the background.
	// Without it, a search reads every event that the index lacks.
	SearchIndex bool
	// SyncEvery bounds what a power failure can lose from stores of the durability normal:
	// what they have written is synced after this time, with one sync for all of it. Zero
	// leaves that to the metadata of each store ([journal.MetaSyncEvery]), and without that
	// to the system and to the checkpoints.
	SyncEvery time.Duration
	// Now tells the time; nil means the clock of the machine.
	Now func() time.Time
	// Timer returns a channel on which a time is sent once after d, by the same clock, and a
	// function that stops the timer. Nil means the timers of the machine. It is used for
	// SyncEvery; see also [Directory.SyncDue].
	Timer func(d time.Duration) (c <-chan time.Time, stop func())

	hooks  failpoint.Hooks
	pacing pacing // zero: usualPacing
	naps   naps   // zero: usualNaps
}

// Library names the version of SQLite in this program, and the library that it comes from:
// mattn/go-sqlite3, or modernc.org/sqlite without cgo or with the build tag purego. Both
// write the same files.
func Library() string { return sqlite.Library() }

// Directory is a session directory that this process owns: a [journal.Storage]. Open,
// Create, Cut, Retire, Saved and Close are called by one goroutine at a time. Meanwhile,
// any goroutine may call the other methods, and use and close stores.
type Directory struct {
	archive
	dir         string
	options     Options
	lock        *ownership
	home        string // see [catalog.Catalog.Home]
	acks        *catalog.Acknowledgements
	checkpoints *checkpoints
	syncs       *syncs
	wear        *wear
	awake       *awake
	short       shortage
	keeper      *keeper
	presses     presses
	spares      *spares
	hydrator    *hydrator
	indexer     *indexer // nil: none

	// changing is held while a store switches to another file, or while its session
	// becomes live or ends.
	changing exclusion
	loose    looseCuts
	current  sync.Map // paths of files that are known to have the newest version
	// crossing makes background work yield to cuts.
	crossing crossing
	remains  atomic.Int64 // about how many files ended sessions have left
	held     atomic.Int64 // how many of them the last round could not make unnecessary

	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	open     map[journal.SessionID]*Store
	problems []error          // found when the directory was opened
	leftOut  []string         // see [Directory.setLeftAside]
	troubles map[string]error // by the work that they prevent
}

var _ journal.Storage = (*Directory)(nil)

// Open opens a session directory for this process, and creates it if it does not exist. The
// code of the error is unavailable while another process owns the directory; storage if the
// catalogue is damaged, read-only or not a catalogue of terrarium; unsupported if a newer
// program wrote the catalogue; and invalid_argument for a directory of another program. In
// these cases nothing has been changed.
func Open(ctx context.Context, dir string, options Options) (*Directory, error) {
	if err := sqlite.CheckVersion(); err != nil {
		return nil, err
	}
	options.MaxQueueBytes = cmp.Or(options.MaxQueueBytes, defaultQueueBytes)
	options.pacing = cmp.Or(options.pacing, usualPacing)
	options.naps = cmp.Or(options.naps, usualNaps)
	if err := checkSyncEvery(options.SyncEvery); err != nil {
		return nil, err
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Timer == nil {
		options.Timer = func(d time.Duration) (<-chan time.Time, func()) {
			timer := time.NewTimer(d)
			return timer.C, func() { timer.Stop() }
		}
	}
	dir, err := makeDirectory(ctx, dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	counted := newWear(options.Now())
	counted.observe(&options.hooks)
	counted.found(filepath.Join(dir, catalog.Name))
	d := &Directory{dir: dir, options: options, lock: lock, wear: counted, changing: newExclusion(), presses: presses{}, open: map[journal.SessionID]*Store{}, troubles: map[string]error{}}
	if err := d.load(ctx); err != nil {
		if d.catalog != nil {
			err = errors.Join(err, d.catalog.Close())
		}
		return nil, errors.Join(err, d.acks.Close(), lock.Close())
	}
	d.checkpoints = startCheckpoints(d.wear)
	d.syncs = startSyncs(d)
	d.awake = newAwake(d.options.naps, d.options.Now)
	d.catalog.OnWrite(func() { d.checkpoints.wrote(d.catalog.Path(), catalogueCommitBytes) })
	d.spares = startSpares(d.catalog, &d.crossing, &d.short)
	d.keeper = startKeeper(d)
	d.hydrator = startHydrator(d)
	if options.SearchIndex {
		d.indexer = startIndexer(d)
	}
	return d, nil
}

func makeDirectory(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", storageError("open", dir, err)
	}
	if err := checkPlace(ctx, dir); err != nil {
		return "", err
	}
	// A new directory must not vanish with its content in a power loss, so every
	// directory that gets a new entry is synced.
	var grown []string
	for path := filepath.Join(dir, files.Stores); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			break
		}
		grown = append(grown, filepath.Dir(path))
	}
	if err := os.MkdirAll(filepath.Join(dir, files.Stores), 0o755); err != nil {
		return "", storageError("open", dir, err)
	}
	for _, path := range grown {
		if err := files.SyncDirectory(path); err != nil {
			return "", storageError("open", path, err)
		}
	}
	return dir, nil
}

// load opens the catalogue and cleans up after a process that was killed.
func (d *Directory) load(ctx context.Context) error {
	path := filepath.Join(d.dir, catalog.Name)
	if missing(path) {
		if err := catalog.Make(path, d.options.hooks); err != nil {
			return storageError("open", path, err)
		}
	}
	if err := catalog.Schema.Upgrade(ctx, path, d.options.hooks); err != nil {
		return storageError("open", path, err)
	}
	k, err := catalog.Take(path, d.options.hooks)
	if err != nil {
		return storageError("open", path, err)
	}
	d.archive = archive{catalog: &sessions{k, d.options.hooks, d.owned, d.opened, d}, inUse: d.opened, flush: d.flushed}
	if err := rebuild.RefuseOlder(ctx, k); err != nil {
		return storageError("open", path, err)
	}
	if d.home, err = d.catalog.NameHome(ctx); err != nil {
		return storageError("open", path, err)
	}
	if err := d.decide(ctx); err != nil {
		return storageError("open", d.dir, err)
	}
	if err := d.takeAcks(ctx); err != nil {
		return storageError("open", filepath.Join(d.dir, catalog.AcknowledgedName), err)
	}
	return storageError("open", d.dir, d.tidy(ctx))
}

// Open opens a live store for writing, with a new origin. If it is incomplete,
// its history is copied in the background.
func (d *Directory) Open(ctx context.Context, session journal.SessionID) (journal.Store, error) {
	if err := d.setLeftAside(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		var s journal.Store
		err := withRoom(d, noPaths, func() (err error) {
			s, err = d.openOnce(ctx, session)
			return err
		})
		if try == readTries || !errors.Is(err, errMoved) {
			return s, err
		}
	}
}

// openOnce is Open, but returns errMoved if the session gets its whole file meanwhile.
// Then nothing has been opened.
func (d *Directory) openOnce(ctx context.Context, session journal.SessionID) (journal.Store, error) {
	e, err := d.catalog.Entry(ctx, "open", session)
	if err != nil {
		return nil, err
	}
	if !e.Live {
		return nil, invalid("open", fmt.Sprintf("session %s has ended", session), "read its history, or open a session that is live").With("session", string(session))
	}
	if d.opened(session) != nil {
		return nil, &abi.Error{Code: abi.Conflict, Op: "open", Message: fmt.Sprintf("session %s is open already", session), IDs: map[string]string{"session": string(session)}}
	}
	if err := storefile.Schema.Upgrade(ctx, e.Path, d.options.hooks); err != nil {
		return nil, storageError("open", e.Path, err)
	}
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	crashed := !missing(e.Path + logSuffix)
	d.wear.found(e.Path)
	w, err := openWriter(e.Path, e.Durability, origin, d.options.hooks)
	if err != nil {
		return nil, storageError("open", e.Path, err)
	}
	w.wear = d.wear
	if err = d.options.hooks.At(failpoint.Opened, e.Path); err == nil && w.marked {
		err = d.makeFirm()
	}
	if err == nil && (e.Durability == journal.Full || crashed) {
		// Readers assume that the present content is durable, and that a commit that failed
		// when the file was last written to was not made; see [catalog.Take]. What another
		// process has left in the log is about to be marked as acknowledged.
		err = w.sync()
	}
	if err != nil {
		return nil, storageError("open", e.Path, errors.Join(err, w.close()))
	}
	s, err := d.attach(ctx, e, w)
	if err != nil {
		return nil, storageError("open", e.Path, errors.Join(err, w.close()))
	}
	return d.remember(s), nil
}

// attach makes the store of a file that has been opened for writing.
func (d *Directory) attach(ctx context.Context, e catalog.Entry, w *writer) (*Store, error) {
	f, err := d.catalog.openFamily(ctx, e, false)
	if err != nil {
		return nil, err
	}
	if e.Meta, err = f.own.meta(ctx); err == nil {
		_, err = f.count(ctx) // a file that cannot be read is not opened
	}
	if err == nil {
		w.lossy, err = f.lossy(ctx)
	}
	var wrote map[journal.Origin]uint64
	if err == nil {
		wrote, err = storefile.OwnHighest(ctx, w.c)
	}
	if err == nil && !e.Complete {
		e.Needs, err = d.catalog.Needs(ctx, e.Session)
	}
	if err == nil {
		err = d.settle(ctx, e, f)
	}
	if err != nil {
		return nil, errors.Join(f.vanished(err), f.close())
	}
	s := newStore(d, e, w, f, 0, wrote)
	for _, p := range f.missing {
		d.report(historyOf(e.Session), lostAncestor(e, p))
	}
	return s, nil
}

// newborn makes the store of a file that has been filled and has the events of its first
// record. The catalogue does not know it yet: what its file lacks of its history is in the
// files of its parents and of the sessions that these need themselves.
func (d *Directory) newborn(e catalog.Entry, w *writer, parents []*Store, first uint64) (*Store, error) {
	f := &family{own: ownReader(vouched{path: w.path, session: e.Session})}
	for _, p := range parents {
		if err := p.shelf.shareWith(f, e.Needs); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	d.current.Store(w.path, true)
	s := newStore(d, e, w, f, first, nil)
	s.cuts.made = time.Now()
	return s, nil
}

func (d *Directory) remember(s *Store) *Store {
	d.mu.Lock()
	d.open[s.info.Session] = s
	d.mu.Unlock()
	if !s.complete.Load() {
		d.hydrator.nudge()
	}
	return s.start()
}

func (d *Directory) forget(s *Store) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[s.info.Session] == s {
		delete(d.open, s.info.Session)
		delete(d.troubles, historyOf(s.info.Session))
	}
}

// opened returns the open store of a session, or nil.
func (d *Directory) opened(session journal.SessionID) *Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[session]
}

// Retire ends a live store; if it is open, it is closed first.
func (d *Directory) Retire(ctx context.Context, session journal.SessionID) error {
	e, err := d.catalog.Entry(ctx, "retire", session)
	if err != nil || !e.Live {
		return err
	}
	var wrote map[journal.Origin]uint64
	if s := d.opened(session); s != nil {
		if err := s.Close(ctx); err != nil {
			return err
		}
		wrote = s.authored()
	}
	err = d.retire(ctx, session, wrote)
	d.hydrator.nudge()
	return storageError("retire", d.catalog.Path(), err)
}

// retire ends a live store that is not open.
func (d *Directory) retire(ctx context.Context, session journal.SessionID, wrote map[journal.Origin]uint64) error {
	if err := d.makeFirm(); err != nil {
		return err
	}
	still := d.standStill()
	defer still.end()
	ctx = context.WithoutCancel(ctx) // the mark and the catalogue must agree
	if e, err := d.catalog.Entry(ctx, "retire", session); err == nil && e.File != "" {
		// The mark is for [Rebuild]. An error is ignored, since the catalogue decides as long
		// as it exists.
		_ = storefile.Mark(ctx, e.Path, session, storefile.Retired, "1")
	}
	defer d.acks.Release(session) // the error is reported, and nothing is lost
	return d.catalog.Retire(session, wrote)
}

// allOpen returns the open stores, in any order.
func (d *Directory) allOpen() []*Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.open))
}

// Close closes the directory, and stores that are still open. Later calls return the same
// error.
func (d *Directory) Close() error {
	d.closing.Do(func() { d.closeErr = d.shut() })
	return d.closeErr
}

func (d *Directory) shut() error {
	left := d.allOpen()
	slices.SortFunc(left, func(a, b *Store) int { return cmp.Compare(a.info.Session, b.info.Session) })
	d.indexer.close()  // it reads stores
	d.hydrator.close() // it moves stores from file to file
	errs := []error{d.makeFirm()}
	ctx := context.Background()
	errs = append(errs, closeAll(ctx, left))
	d.keeper.close()
	if errors.Join(errs...) == nil {
		d.hydrator.discard(ctx)
	}
	errs = append(errs, storageError("close", d.dir, errors.Join(d.spares.close(), d.presses.close())))
	d.checkpoints.close()
	d.syncs.close()
	errs = append(errs, storageError("close", d.catalog.Path(), errors.Join(d.catalog.Close(), d.acks.Close())), storageError("close", d.lock.Path(), d.lock.Close()))
	return errors.Join(errs...)
}

// closedAtOnce is how many stores are closed at the same time: each waits for the disk and
// for the processor in turn.
const closedAtOnce = 8

func closeAll(ctx context.Context, stores []*Store) error {
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	free := make(chan struct{}, closedAtOnce)
	for i, s := range stores {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = s.Close(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func newOrigin() (journal.Origin, error) {
	id, err := uuid.NewRandom()
	return journal.Origin(id), err
}

func checkSpec(op string, spec journal.StoreSpec) error {
	if spec.Durability != journal.Normal && spec.Durability != journal.Full {
		return invalid(op, fmt.Sprintf("a store cannot have the durability %q", spec.Durability), "use normal or full, or no store")
	}
	return nil
}

// newEntry describes the session that a spare file becomes.
func newEntry(spec journal.StoreSpec, p *spareFile) catalog.Entry {
	return catalog.Entry{
		SessionInfo: journal.SessionInfo{
			Session: p.session, Graph: spec.Graph, Path: p.path, Live: true, Durability: spec.Durability, Events: -1, Meta: maps.Clone(spec.Meta),
		},
		Born: spec.Born, File: filepath.Base(p.path),
	}
}
