package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/seed47132306/terrarium/engine"
)

// poolSize is how many files are kept ready: enough for a few cuts in a row.
const poolSize = 4

// prepared is a file that waits to become the store of a session: it has its
// name and its layout, is marked as unused, and is durable with its directory
// entry. Making one takes several syncs, which nobody then has to wait for.
type prepared struct {
	*writer
	session engine.SessionID
}

// keeper does what a cut and its creatures need not wait for: it makes cuts durable
// and files in advance, and closes the stores that cuts have ended.
type keeper struct {
	d *Directory

	mu     sync.Mutex
	ready  []*prepared
	buried []*Store
	loans  []*loan // that were lent, and somebody may still be reading
	closed bool
	idle   *sync.Cond // buried has become empty; uses mu

	wake chan struct{} // has room for one: there is something to do
	stop chan struct{}
	done chan struct{}
}

func startKeeper(d *Directory) *keeper {
	k := &keeper{d: d, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	k.idle = sync.NewCond(&k.mu)
	go k.run()
	return k
}

func (k *keeper) run() {
	defer close(k.done)
	for {
		select {
		case <-k.wake:
		case <-k.stop:
			return
		}
		for k.work() {
		}
	}
}

// work does one thing, and answers whether there may be more.
func (k *keeper) work() bool {
	k.d.crossing.giveWay()
	if k.d.loose.due() {
		_ = k.d.makeFirm() // an error is a problem of the directory
		return true
	}
	k.mu.Lock()
	if len(k.buried) > 0 {
		s := k.buried[0]
		k.mu.Unlock()
		// Its children have all that it held, so an error concerns nobody.
		_ = s.Close(context.Background())
		k.mu.Lock()
		k.buried = k.buried[1:]
		if len(k.buried) == 0 {
			k.idle.Broadcast()
		}
		k.mu.Unlock()
		k.d.hydrator.nudge()
		return true
	}
	if n := len(k.loans); n > 0 {
		l := k.loans[n-1]
		k.loans = k.loans[:n-1]
		k.mu.Unlock()
		_ = l.finish() // files that were only read
		return true
	}
	wanted := len(k.ready) < poolSize && !k.closed
	k.mu.Unlock()
	return wanted && k.refill()
}

// refill makes a file, and answers whether it could. More of them at once would be
// in the way of the next cut.
func (k *keeper) refill() bool {
	p, err := k.d.prepare()
	if err != nil {
		return false // whoever takes one finds out why
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready = append(k.ready, p)
	return true
}

// take answers a file that is ready, and makes one if none is.
func (k *keeper) take() (*prepared, error) {
	defer nudge(k.wake)
	k.mu.Lock()
	if n := len(k.ready); n > 0 {
		p := k.ready[n-1]
		k.ready = k.ready[:n-1]
		k.mu.Unlock()
		return p, nil
	}
	k.mu.Unlock()
	return k.d.prepare()
}

// bury has a store closed.
func (k *keeper) bury(s *Store) {
	k.mu.Lock()
	k.buried = append(k.buried, s)
	k.mu.Unlock()
	nudge(k.wake)
}

// giveBack has files closed that a store is not read from any more.
func (k *keeper) giveBack(l *loan) {
	k.mu.Lock()
	k.loans = append(k.loans, l)
	k.mu.Unlock()
	nudge(k.wake)
}

// settle waits until all stores that were to be closed are.
func (k *keeper) settle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.idle.Broadcast()
	})
	defer stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.buried) > 0 && ctx.Err() == nil && !k.closed {
		k.idle.Wait()
	}
	return ctx.Err()
}

// holds reports whether the store of a session has yet to be closed.
func (k *keeper) holds(session engine.SessionID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.buried, func(s *Store) bool { return s.info.Session == session })
}

// close ends the work: it closes what is to be closed and removes the files that
// nobody has taken.
func (k *keeper) close() error {
	k.mu.Lock()
	k.closed = true
	k.idle.Broadcast()
	k.mu.Unlock()
	close(k.stop)
	<-k.done
	for _, s := range k.buried {
		_ = s.Close(context.Background())
	}
	for _, l := range k.loans {
		_ = l.finish()
	}
	var errs []error
	for _, p := range k.ready {
		errs = append(errs, k.d.discard(p, p.path))
	}
	return storageError("close", k.d.dir, errors.Join(errs...))
}

// prepare makes a file for a session to come. Names rise with time.
func (d *Directory) prepare() (p *prepared, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	content, err := storeSchema.template()
	if err != nil {
		return nil, err
	}
	path := d.catalog.filePath(id.String() + storeSuffix)
	if err := d.options.hooks.writeWhole(path, content); err != nil {
		return nil, err
	}
	if err := d.options.hooks.at(pointSpareWritten, path); err != nil {
		return nil, errors.Join(err, d.options.hooks.removeDatabase(path))
	}
	origin, err := newOrigin()
	if err != nil {
		return nil, errors.Join(err, d.options.hooks.removeDatabase(path))
	}
	p = &prepared{session: engine.SessionID(id.String())}
	if p.writer, err = openWriter(path, engine.Full, origin, d.options.hooks); err != nil {
		return nil, errors.Join(err, d.options.hooks.removeDatabase(path))
	}
	// The first transaction makes the write-ahead log, whose name is then
	// durable with that of the file.
	if err = p.c.transact(p.claim); err == nil {
		err = d.options.hooks.syncDirectory(filepath.Dir(path))
	}
	if err == nil {
		err = d.options.hooks.at(pointSpareReady, path)
	}
	if err != nil {
		return nil, errors.Join(err, d.discard(p, path))
	}
	p.claimed = true
	return p, nil
}

// fill writes what a prepared file is, and what it begins with, in one transaction,
// which is durable or not, whatever the durability of the session is. From then on
// its writer is as durable as was asked for.
func (d *Directory) fill(p *prepared, e entry, durable bool, content func() error) error {
	p.durability = e.Durability
	if err := p.c.tempo(durable); err != nil {
		return err
	}
	err := p.c.transact(func() error {
		if err := p.identify(e); err != nil {
			return err
		}
		if err := content(); err != nil {
			return err
		}
		return d.options.hooks.at(pointFilling, p.path)
	})
	if err != nil {
		return err
	}
	if err := d.options.hooks.at(pointFilled, p.path); err != nil {
		return err
	}
	return p.pace()
}

// identify writes what the file is and where it comes from, within a
// transaction.
func (w *writer) identify(e entry) error {
	pairs := []driver.Value{
		"session", string(e.Session),
		"graph", string(e.Graph),
		"born", strconv.FormatUint(e.born, 10),
		"durability", e.Durability.String(),
		"created", strconv.FormatInt(e.Created, 10),
		"cut", e.cut,
		"kind", e.kind,
	}
	if !e.Complete {
		pairs = append(pairs, "incomplete", "1")
	}
	rows := strings.Repeat(", (?, ?)", len(pairs)/2)[2:]
	if err := w.c.exec("INSERT OR REPLACE INTO store (key, value) VALUES "+rows, pairs...); err != nil {
		return err
	}
	parents := e.Parents
	if len(parents) == 0 {
		parents = []engine.SessionID{""}
	}
	for i, p := range parents {
		values := []driver.Value{string(e.Session), int64(i), text(string(p)), string(e.Graph), e.Created, e.MergedAt, e.SplitAt,
			int64(e.born), e.Durability.String(), e.cut, e.kind}
		if err := w.c.exec(`INSERT OR REPLACE INTO ancestor (session, ordinal, parent, graph, created, merged_at, split_at, born, durability, cut, kind)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values...); err != nil {
			return err
		}
	}
	return nil
}

// discard removes a file that the catalogue has not accepted.
func (d *Directory) discard(p *prepared, path string) error {
	var err error
	if p != nil && p.writer != nil {
		err = p.close()
	}
	return errors.Join(err, d.options.hooks.removeDatabase(path))
}
