package storetest_test

import (
	"context"
	"slices"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
)

// hooks change what a right store does. Hooks that are nil change nothing.
type hooks struct {
	append   func(j *wrongStore, r *journal.Record)
	flush    func(j *wrongStore) // before reads and the end
	history  func(info *journal.SessionInfo, q journal.HistoryQuery, list []journal.Event) []journal.Event
	query    func(q *journal.HistoryQuery)
	failed   func(err error) error // of History of a session
	messages func(list []journal.Event) []journal.Event
	state    func(rows map[string][]byte) map[string][]byte
	letters  func(info *journal.SessionInfo, rows []journal.DeadLetterRow) []journal.DeadLetterRow
	wait     func(j *wrongStore, ctx context.Context, seq uint64) error
	origin   func(j *wrongStore) journal.Origin

	saved    func(g *journal.SavedGraph)
	sessions func(list []journal.SessionInfo) []journal.SessionInfo
	lineage  func(list []journal.SessionInfo) []journal.SessionInfo
	verify   func(r *journal.VerifyReport)
	cut      func(c *journal.Cut)
	cutFails func(parents []journal.Store)
	create   func(s journal.Storage, err error, specs []journal.StoreSpec)
	open     func(s journal.Storage, session journal.SessionID) journal.SessionID
	keep     func(s *wrong, session journal.SessionID, events int64) int64
	fork     func(s *wrong, session journal.SessionID, dir string) (journal.SessionID, error)
}

// wrong is a storage with hooks.
type wrong struct {
	journal.Storage
	*hooks
	pruned map[journal.SessionID]int64
}

// wrongFiles is a wrong storage that also prunes and copies.
type wrongFiles struct {
	*wrong
	journal.Exporter
	pruner storetest.Pruner
}

func (w *wrongFiles) KeepNewest(ctx context.Context, session journal.SessionID, events int64) error {
	if w.keep != nil {
		events = w.keep(w.wrong, session, events)
	}
	if events == 0 {
		return nil
	}
	return w.pruner.KeepNewest(ctx, session, events)
}

func (w *wrongFiles) Fork(ctx context.Context, session journal.SessionID, dir string) (journal.SessionID, error) {
	if w.fork != nil {
		return w.fork(w.wrong, session, dir)
	}
	return w.Exporter.Fork(ctx, session, dir)
}

func (w *wrong) wrap(list []journal.Store, err error) ([]journal.Store, error) {
	for i := range list {
		list[i] = &wrongStore{Store: list[i], w: w}
	}
	return list, err
}

func (w *wrong) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	list, err := w.Storage.Create(ctx, specs...)
	if w.create != nil {
		w.create(w.Storage, err, specs)
	}
	return w.wrap(list, err)
}

func (w *wrong) Open(ctx context.Context, session journal.SessionID) (journal.Store, error) {
	if w.open != nil {
		session = w.open(w.Storage, session)
	}
	s, err := w.Storage.Open(ctx, session)
	if err != nil {
		return nil, err
	}
	return &wrongStore{Store: s, w: w}, nil
}

func (w *wrong) Cut(ctx context.Context, c journal.Cut) ([]journal.Store, error) {
	c.Parents, c.Children = slices.Clone(c.Parents), slices.Clone(c.Children)
	for i, p := range c.Parents {
		if own, ok := p.(*wrongStore); ok {
			own.flush()
			c.Parents[i] = own.Store
		}
	}
	if w.cut != nil {
		w.cut(&c)
	}
	list, err := w.Storage.Cut(ctx, c)
	if err != nil && w.cutFails != nil {
		w.cutFails(c.Parents)
	}
	return w.wrap(list, err)
}

func (w *wrong) Saved(ctx context.Context) ([]journal.SavedGraph, []error, error) {
	list, problems, err := w.Storage.Saved(ctx)
	for i := range list {
		if w.saved != nil {
			w.saved(&list[i])
		}
	}
	return list, problems, err
}

func (w *wrong) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	list, err := w.Storage.Sessions(ctx)
	if w.sessions != nil {
		list = w.sessions(list)
	}
	return list, err
}

func (w *wrong) Lineage(ctx context.Context, session journal.SessionID) ([]journal.SessionInfo, error) {
	list, err := w.Storage.Lineage(ctx, session)
	if w.lineage != nil {
		list = w.lineage(list)
	}
	return list, err
}

func (w *wrong) Verify(ctx context.Context, session journal.SessionID) (journal.VerifyReport, error) {
	r, err := w.Storage.Verify(ctx, session)
	if w.verify != nil && err == nil {
		w.verify(&r)
	}
	return r, err
}

func (w *wrong) History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error) {
	if w.query != nil {
		w.query(&q)
	}
	list, err := w.Storage.History(ctx, session, q)
	if err != nil && w.failed != nil {
		err = w.failed(err)
	}
	if w.history != nil && err == nil {
		list = w.history(w.info(ctx, session), q, list)
	}
	return list, err
}

func (w *wrong) info(ctx context.Context, session journal.SessionID) *journal.SessionInfo {
	list, _ := w.Storage.Lineage(ctx, session)
	if len(list) == 0 {
		return &journal.SessionInfo{}
	}
	return &list[0]
}

// wrongStore is a store with hooks.
type wrongStore struct {
	journal.Store
	w *wrong

	mu   sync.Mutex
	held []*journal.Record
}

// release appends what a hook has kept.
func (j *wrongStore) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.held {
		j.Store.Append(r)
	}
	j.held = nil
}

// hold keeps a record for later.
func (j *wrongStore) hold(r *journal.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = append(j.held, r)
}

func (j *wrongStore) flush() {
	if j.w.hooks.flush != nil {
		j.w.hooks.flush(j)
	} else {
		j.release()
	}
}

func (j *wrongStore) Append(r *journal.Record) {
	if j.w.append != nil {
		j.w.append(j, r)
		return
	}
	j.Store.Append(r)
}

func (j *wrongStore) Origin() journal.Origin {
	if j.w.origin != nil {
		return j.w.origin(j)
	}
	return j.Store.Origin()
}

func (j *wrongStore) Wait(ctx context.Context, seq uint64) error {
	if j.w.wait != nil {
		return j.w.wait(j, ctx, seq)
	}
	j.release()
	return j.Store.Wait(ctx, seq)
}

func (j *wrongStore) State(ctx context.Context, creature journal.CreatureID) (map[string][]byte, error) {
	j.flush()
	rows, err := j.Store.State(ctx, creature)
	if j.w.state != nil && err == nil {
		rows = j.w.state(rows)
	}
	return rows, err
}

func (j *wrongStore) Messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	j.flush()
	list, err := j.Store.Messages(ctx, channel, after, until, limit, bytes)
	if j.w.messages != nil && err == nil {
		list = j.w.messages(list)
	}
	return list, err
}

func (j *wrongStore) History(ctx context.Context, q journal.HistoryQuery) ([]journal.Event, error) {
	j.flush()
	if j.w.query != nil {
		j.w.query(&q)
	}
	list, err := j.Store.History(ctx, q)
	if j.w.history != nil && err == nil {
		info := j.Info()
		list = j.w.history(&info, q, list)
	}
	return list, err
}

func (j *wrongStore) DeadLetters(ctx context.Context, creature journal.CreatureID, after journal.EventID, limit int) ([]journal.DeadLetterRow, error) {
	j.flush()
	rows, err := j.Store.DeadLetters(ctx, creature, after, limit)
	if j.w.letters != nil && err == nil {
		info := j.Info()
		rows = j.w.letters(&info, rows)
	}
	return rows, err
}

func (j *wrongStore) Close(ctx context.Context) error {
	j.release()
	return j.Store.Close(ctx)
}
