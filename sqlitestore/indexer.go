package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

const (
	// indexEvery is the interval between rounds of indexing. A search reads events that are
	// not indexed yet in the stores.
	indexEvery = 2 * time.Second
	// busyPause is the ratio of the pause after a step of indexing to that step, while
	// events are being logged.
	busyPause = 9
)

// workSearch is the key of this work in [Directory.Problems].
const workSearch = "search"

// indexer keeps the index for searching up to date, in the background: it yields to cuts
// and to appending. The index may be behind, and the work may be stopped at any point.
type indexer struct {
	d       *Directory
	path    string
	end     context.CancelFunc
	done    chan struct{}
	shrunk  atomic.Bool // history has been pruned
	stepped time.Time   // when the last step began
	seen    activity    // at that time
}

// activity is what has been logged, as far as it is cheap to know.
type activity struct {
	records uint64
	stores  int
}

func (d *Directory) activity() (a activity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.open {
		a.records += s.written.reached.Load()
		a.stores++
	}
	return a
}

func startIndexer(d *Directory) *indexer {
	ctx, cancel := context.WithCancel(context.Background())
	x := &indexer{d: d, path: filepath.Join(d.dir, search.Name), end: cancel, done: make(chan struct{})}
	x.shrunk.Store(true)
	go x.run(ctx)
	return x
}

// lookAgain records that history has been pruned.
func (x *indexer) lookAgain() {
	if x != nil {
		x.shrunk.Store(true)
	}
}

// indexSize returns the size of the index on disk.
func (d *Directory) indexSize() int64 { return sqlite.DiskSize(filepath.Join(d.dir, search.Name)) }

// close ends the work as soon as it can be interrupted.
func (x *indexer) close() {
	if x == nil {
		return
	}
	x.end()
	<-x.done
}

func (x *indexer) run(ctx context.Context) {
	defer close(x.done)
	tick := time.NewTicker(indexEvery)
	defer tick.Stop()
	indexed := activity{stores: -1}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := x.d.activity()
		if now == indexed {
			continue
		}
		if x.round(ctx) == nil {
			indexed = now
		}
	}
}

// round brings the index up to date.
func (x *indexer) round(ctx context.Context) error {
	x.stepped, x.seen = time.Now(), x.d.activity()
	err := x.room()
	if err == nil {
		err = x.trim(ctx)
	}
	if err == nil {
		err = search.Extend(ctx, x.path, x.d, search.Everything, search.Pacing{Rest: func() { x.pace(ctx) }, GiveWay: x.d.crossing.giveWay})
	}
	if sqlite.Damaged(err) {
		err = x.replace(err)
	}
	if ctx.Err() == nil {
		x.d.report(workSearch, err)
	}
	return err
}

// pace waits until no cut is under way, and longer if events have been logged since the
// last step.
func (x *indexer) pace(ctx context.Context) {
	x.d.crossing.giveWay()
	took := time.Since(x.stepped)
	if now := x.d.activity(); now != x.seen {
		x.seen = now
		select {
		case <-time.After(busyPause * took):
		case <-ctx.Done():
		}
	}
	x.stepped = time.Now()
}

// room returns an error if the index may not grow: half of the directory's budget is
// reserved for data that cannot be recreated.
func (x *indexer) room() error {
	most := x.d.options.MaxDiskBytes
	if most <= 0 || sqlite.DiskSize(x.path) <= most/2 {
		return nil
	}
	return &abi.Error{
		Code: abi.LimitExceeded, Op: "search", Message: fmt.Sprintf("%s takes more than half of the budget of %d bytes, so it is not extended", x.path, most),
		Remedy: "raise the budget, or disable the index; searching takes longer without it", IDs: map[string]string{"path": x.path},
	}
}

// trim empties an index that is mostly about removed events.
func (x *indexer) trim(ctx context.Context) error {
	if missing(x.path) || !x.shrunk.Swap(false) {
		return nil
	}
	return search.Trim(ctx, x.path, func() (int64, error) { return x.d.countEvents(ctx) })
}

// countEvents returns how many events the files of the directory have, each counted once.
func (d *Directory) countEvents(ctx context.Context) (n int64, err error) {
	entries, err := d.catalog.Entries(ctx)
	if err != nil {
		return 0, err
	}
	most := map[[16]byte]int64{}
	for _, e := range entries {
		if e.File == "" {
			continue
		}
		own, err := d.catalog.openMember(ctx, e)
		if err != nil {
			continue // it may have been removed meanwhile
		}
		counts, err := (&family{own: own}).counts(ctx)
		if err := errors.Join(err, own.close()); err != nil {
			return 0, err
		}
		for origin, has := range counts {
			most[origin] = max(most[origin], has)
		}
	}
	for _, has := range most {
		n += has
	}
	return n, nil
}

// replace sets a damaged index aside. The next round makes a new one.
func (x *indexer) replace(damage error) error {
	kept, err := sqlite.PutAside(x.path, x.d.options.hooks)
	if err != nil {
		return errors.Join(damage, err)
	}
	return &abi.Error{
		Code: abi.Storage, Op: "search", Message: fmt.Sprintf("%s was damaged; it is kept as %s, and a new one is being made", x.path, kept),
		Remedy: "nothing is lost, since the stores have everything; check the disk", IDs: map[string]string{"path": x.path}, Err: damage,
	}
}
