package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// storage is one process's view of a directory.
type storage struct {
	d    *Disk
	boot int
}

func (t *storage) enter(op string) error {
	t.d.mu.Lock()
	if t.d.boot != t.boot || t.d.crashed {
		t.d.mu.Unlock()
		return fault(op, "the process is dead")
	}
	return nil
}

func (t *storage) find(op string, id journal.SessionID) (*session, error) {
	if s := t.d.sessions[id]; s != nil {
		return s, nil
	}
	return nil, &abi.Error{Code: abi.NotFound, Op: op, Message: "there is no session " + string(id), Remedy: "sessions lists them"}
}

// Saved implements [journal.Storage].
func (t *storage) Saved(context.Context) ([]journal.SavedGraph, []error, error) {
	if err := t.enter("saved"); err != nil {
		return nil, nil, err
	}
	defer t.d.mu.Unlock()
	var out []journal.SavedGraph
	for _, s := range t.d.order {
		if s.info.Live {
			out = append(out, s.saved())
		}
	}
	return out, nil, nil
}

func (s *session) saved() journal.SavedGraph {
	r := s.rows
	return journal.SavedGraph{
		Session: s.info.Session, Graph: s.info.Graph, Born: s.born, Durability: s.info.Durability, Path: s.info.Path,
		Creatures: sorted(r.creatures, func(a, b journal.CreatureRow) int {
			return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
		}),
		Channels: sorted(r.channels, func(a, b journal.ChannelRow) int {
			return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
		}),
		Heads: sorted(r.heads, func(a, b journal.HeadRow) int { return cmp.Compare(a.Channel, b.Channel) }),
		Edges: sorted(r.edges, func(a, b journal.EdgeRow) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Creature, b.Creature), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Direction, b.Direction))
		}),
		Cursors: sorted(r.cursors, func(a, b journal.CursorRow) int {
			return cmp.Or(cmp.Compare(a.Reader, b.Reader), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Until, b.Until))
		}),
		Producers: sorted(r.producers, func(a, b journal.ProducerRow) int {
			return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Producer, b.Producer))
		}),
		Timers: sorted(r.timers, func(a, b journal.TimerRow) int {
			return cmp.Or(cmp.Compare(a.Creature, b.Creature), cmp.Compare(a.Name, b.Name))
		}),
		Requests: sorted(r.requests, func(a, b journal.RequestRow) int { return strings.Compare(a.ID.String(), b.ID.String()) }),
		Wires: sorted(r.wires, func(a, b journal.OutputWire) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Order, b.Order))
		}),
		Meta: maps.Clone(r.meta), LastTime: s.lastTime(),
	}
}

// Open implements [journal.Storage].
func (t *storage) Open(_ context.Context, id journal.SessionID) (journal.Store, error) {
	if err := t.enter("open"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	s, err := t.find("open", id)
	switch {
	case err != nil:
		return nil, err
	case t.d.FailOpens > 0:
		t.d.FailOpens--
		return nil, fault("open", "the file cannot be opened")
	case !s.info.Live:
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "open", Message: "the session has ended"}
	case s.handle != nil:
		return nil, &abi.Error{Code: abi.Conflict, Op: "open", Message: "the session is open"}
	case s.info.Durability == journal.Full && s.synced < s.written && t.d.Broken:
		return nil, fault("open", "the disk is broken")
	}
	if s.info.Durability == journal.Full {
		s.synced = s.written // what a process that died has left there is durable once it is open
	}
	return t.d.open(s), nil
}

// Create implements [journal.Storage].
func (t *storage) Create(_ context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	if err := t.enter("create"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	var all journal.Cut
	for _, spec := range specs {
		if spec.Durability == journal.Volatile {
			return nil, &abi.Error{Code: abi.InvalidArgument, Op: "create", Message: "a store is durable"}
		}
		all.Children = append(all.Children, journal.CutChild{StoreSpec: spec})
	}
	switch {
	case t.d.Broken:
		return nil, fault("create", "the disk is broken")
	case t.d.FailCreates > 0:
		t.d.FailCreates--
		return nil, fault("create", "the file cannot be made")
	}
	sessions, stores, err := t.children(all, nil)
	if err != nil {
		return nil, err
	}
	return t.d.keepAll(sessions, stores), nil
}

// Cut implements [journal.Storage].
func (t *storage) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	if err := t.enter("cut"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	d := t.d
	crash := d.CutCrash
	d.CutCrash = NoCrash
	if crash == CrashBefore {
		d.crash(func(s *session) int { return s.written })
		return nil, fault("cut", "the process is dead")
	}
	parents, err := t.parents(ctx, cut)
	if err != nil {
		return nil, err
	}
	children, stores, err := t.children(cut, parents)
	if err != nil {
		return nil, err
	}
	for _, p := range parents {
		p.written, p.synced = len(p.records), len(p.records)
		p.notify()
	}
	switch {
	case crash == CrashDrained:
		d.crash(func(s *session) int { return s.written })
		return nil, fault("cut", "the process is dead")
	case d.SkipCuts > 0:
		d.SkipCuts--
	case d.FailCuts > 0:
		d.FailCuts--
		return nil, fault("cut", "the catalogue cannot be written")
	}
	for _, p := range parents {
		p.freeze()
		p.info.Live = false
		p.handle.shut()
	}
	for _, s := range children {
		for _, p := range s.parents {
			p.successors = append(p.successors, s)
		}
	}
	out := d.keepAll(children, stores)
	if crash == CrashAfter {
		d.crash(func(s *session) int { return s.written })
		return nil, fault("cut", "the process is dead")
	}
	return out, nil
}

// parents checks the sessions to cut.
func (t *storage) parents(ctx context.Context, cut journal.Cut) ([]*session, error) {
	bad := func(text string) error { return &abi.Error{Code: abi.InvalidArgument, Op: "cut", Message: text} }
	if cut.Kind != journal.CutMerge && cut.Kind != journal.CutSplit && cut.Kind != journal.CutRearrange {
		return nil, bad("there is no cut of the kind " + string(cut.Kind))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var parents []*session
	known := map[journal.SessionID]bool{}
	for _, p := range cut.Parents {
		h, ok := p.(*Store)
		if !ok || h.d != t.d || h.closed {
			return nil, bad("a parent is not an open store of this directory")
		}
		known[h.s.info.Session] = true
		parents = append(parents, h.s)
	}
	for _, c := range cut.Children {
		for _, id := range c.Parents {
			if !known[id] {
				return nil, bad("a child's parent is not cut")
			}
		}
	}
	if t.d.Broken {
		return nil, fault("cut", "the disk is broken")
	}
	return parents, nil
}

// children makes new sessions, of a cut or not, which do not count yet.
func (t *storage) children(cut journal.Cut, parents []*session) (children []*session, stores []*Store, err error) {
	for i := range cut.Children {
		c := &cut.Children[i]
		s := t.d.newSession(c.StoreSpec)
		s.info.Parents, s.info.MadeBy = slices.Clone(c.Parents), cut.Kind
		for range c.VolatileParents {
			s.info.Parents = append(s.info.Parents, "volatile")
			s.unlogged = cut.At
		}
		if len(s.info.Parents) > 1 {
			s.info.MergedAt = cut.At
		}
		if cut.Kind != journal.CutMerge && len(s.info.Parents) > 0 {
			s.info.SplitAt = cut.At
		}
		for _, p := range parents {
			successor := cut.LetterSuccessors(&p.info)
			s.baseRows.inherit(p.rows, c.Creatures, c.Channels, func(l journal.DeadLetterRow) bool { return successor(l.Creature, l.Sender) == i })
			if slices.Contains(c.Parents, p.info.Session) {
				s.inherit(p)
			}
		}
		h := t.d.open(s)
		s.rows = s.baseRows
		if err := h.appendFirst(c.First); err != nil {
			return nil, nil, err
		}
		// The first record comes with the store, and a crash never undoes it.
		s.first, s.baseRows, s.stale = s.events, s.rows.clone(), true
		s.events, s.records, s.rows = nil, nil, s.baseRows.clone()
		h.saved = h.last
		children, stores = append(children, s), append(stores, h)
	}
	return children, stores, nil
}

// inherit takes over the history of a parent, without copying it yet.
func (s *session) inherit(p *session) {
	s.parents, s.info.Complete = append(s.parents, p), false
	s.unlogged = max(s.unlogged, p.unlogged)
	for _, o := range slices.SortedFunc(maps.Keys(p.ranks), func(a, b journal.Origin) int { return cmp.Compare(p.ranks[a], p.ranks[b]) }) {
		s.rank(o)
	}
}

// Behind implements [journal.Pacer].
func (t *storage) Behind() bool { return t.d.Hasty }

// Pace implements [journal.Pacer]. Nothing happens in the background.
func (t *storage) Pace(ctx context.Context) error { return ctx.Err() }

// Retire implements [journal.Storage].
func (t *storage) Retire(_ context.Context, id journal.SessionID) error {
	if err := t.enter("retire"); err != nil {
		return err
	}
	defer t.d.mu.Unlock()
	s, err := t.find("retire", id)
	switch {
	case err != nil:
		return err
	case t.d.Broken:
		return fault("retire", "the disk is broken")
	case t.d.FailRetires > 0:
		t.d.FailRetires--
		return fault("retire", "the catalogue cannot be written")
	}
	s.written, s.synced = len(s.records), len(s.records)
	if s.handle != nil {
		s.handle.shut()
	}
	s.info.Live = false
	return nil
}

// Sessions implements [journal.Storage].
func (t *storage) Sessions(context.Context) ([]journal.SessionInfo, error) {
	if err := t.enter("sessions"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	t.d.tend()
	var out []journal.SessionInfo
	for _, s := range t.d.order {
		out = append(out, s.info)
	}
	return out, nil
}

// History implements [journal.Storage].
func (t *storage) History(_ context.Context, id journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error) {
	if err := t.enter("history"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	s, err := t.find("history", id)
	if err != nil {
		return nil, err
	}
	return s.history(q)
}

// Lineage implements [journal.Storage].
func (t *storage) Lineage(_ context.Context, id journal.SessionID) ([]journal.SessionInfo, error) {
	if err := t.enter("lineage"); err != nil {
		return nil, err
	}
	defer t.d.mu.Unlock()
	if _, err := t.find("lineage", id); err != nil {
		return nil, err
	}
	var out []journal.SessionInfo
	seen := map[journal.SessionID]bool{id: true}
	for next := []journal.SessionID{id}; len(next) > 0; next = next[1:] {
		s := t.d.sessions[next[0]]
		if s == nil {
			continue // volatile
		}
		out = append(out, s.info)
		for _, p := range s.info.Parents {
			if !seen[p] {
				seen[p] = true
				next = append(next, p)
			}
		}
	}
	return out, nil
}

// Verify implements [journal.Storage].
func (t *storage) Verify(_ context.Context, id journal.SessionID) (journal.VerifyReport, error) {
	if err := t.enter("verify"); err != nil {
		return journal.VerifyReport{}, err
	}
	defer t.d.mu.Unlock()
	s, err := t.find("verify", id)
	if err != nil {
		return journal.VerifyReport{}, err
	}
	return s.verify(), nil
}

// Close implements [journal.Storage].
func (t *storage) Close() error { return nil }

// Problems implements [journal.Storage].
func (t *storage) Problems() []error { return nil }
