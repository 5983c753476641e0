package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Cut turns live parents into children. What the children own is written to spare files;
// then one transaction of the catalogue makes the cut. If that transaction fails, or the
// process ends before it, the parents stay as they were. Afterwards, the children are live
// and the parents are never written to again. Cut does not wait for the disk: the cut
// becomes durable right afterwards. Until then, nothing written to children of the
// durability full is acknowledged. The history in the parents' files is not changed. A
// small history is copied to the children at once; otherwise the children are incomplete,
// and get the history in the background. If the catalogue can be neither written nor read
// at that moment, both sides are closed, and the next start continues with one of them.
//
// If ctx ends before that transaction has begun, Cut returns the error and nothing has
// changed, even if the catalogue does not answer. Once the transaction has begun, Cut
// ignores ctx. It waits until the outcome can be read from the catalogue, or until the
// attempts to read it have failed. If the disk hangs, Cut waits for it.
func (d *Directory) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	if err := d.changing.lockWithin(ctx); err != nil {
		return nil, err
	}
	defer d.changing.Unlock()
	if d.loose.stuck() {
		if err := d.makeFirm(); err != nil {
			return nil, err
		}
	}
	d.crossing.enter()
	defer d.crossing.leave()
	parents, err := d.parents(cut)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	defer resumeAll(parents)
	d.roomAhead()
	for _, p := range parents {
		if err := p.park(ctx); err != nil {
			return nil, err
		}
	}
	if err := d.options.hooks.At(failpoint.Parked, d.dir); err != nil {
		return nil, storageError("cut", d.dir, err)
	}
	children, err := d.makeChildren(ctx, id.String(), cut, parents)
	if err == nil {
		err = d.commitCut(ctx, id.String(), cut, parents, children)
	}
	switch {
	case errors.Is(err, catalog.ErrUnknown):
		// Either side may turn out to be the live one, so neither may continue.
		return nil, errors.Join(err, abandon(parents, children))
	case err != nil:
		for _, c := range children {
			err = errors.Join(err, d.discardChild(c))
		}
		return nil, storageError("cut", d.dir, err)
	}
	d.loose.add(newLooseCut(id.String(), parents, children))
	for _, p := range parents {
		p.freeze()
	}
	d.remains.Add(int64(len(parents)))
	// The cut has happened, so nothing below may fail.
	_ = d.options.hooks.At(failpoint.Frozen, d.dir)
	out := make([]journal.Store, len(children))
	for i, c := range children {
		out[i] = d.remember(c.store)
	}
	nudge(d.keeper.wake)
	return out, nil
}

// parents checks a cut, and returns the open stores of its parents.
func (d *Directory) parents(cut journal.Cut) (map[journal.SessionID]*Store, error) {
	if !slices.Contains([]journal.CutKind{journal.CutMerge, journal.CutSplit, journal.CutRearrange}, cut.Kind) {
		return nil, invalid("cut", fmt.Sprintf("%q is not a kind of cut", cut.Kind), "use merge, split or rearrange")
	}
	parents := map[journal.SessionID]*Store{}
	for _, p := range cut.Parents {
		s, ok := p.(*Store)
		if !ok || d.opened(s.info.Session) != s {
			return nil, invalid("cut", "a parent is not an open store of this directory", "open it first")
		}
		parents[s.info.Session] = s
	}
	for _, c := range cut.Children {
		if err := checkSpec("cut", c.StoreSpec); err != nil {
			return nil, err
		}
		for _, p := range c.Parents {
			if parents[p] == nil {
				return nil, invalid("cut", fmt.Sprintf("a child names the parent %s, which is not part of the cut", p), "name it among the parents")
			}
		}
	}
	return parents, nil
}

func resumeAll(parents map[journal.SessionID]*Store) {
	for _, p := range parents {
		p.queue.resume()
	}
}

// child is a store that the catalogue does not know yet: that of a child of a cut, or of a
// new graph.
type child struct {
	catalog.Entry
	plan  *journal.CutChild
	own   ownRows
	p     *spareFile
	store *Store
	first *journal.Record
	// histories are those of parents that are copied to the child's file.
	histories []*smallLog
	// relations are what the child's file records so that the catalogue can be rebuilt.
	relations relations
}

// relations are what a child's file records about other sessions: all children of the cut,
// or all sessions that were created with it, and its parents with what they wrote.
type relations struct {
	siblings []string
	parents  []*Store
	copied   bool // the file also records what ancestors of these wrote
}

func (r relations) write(c *sqlite.Conn) error {
	if err := c.Exec("INSERT OR REPLACE INTO store (key, value) VALUES (?, ?), (?, ?)", storefile.Siblings, strings.Join(r.siblings, " "), storefile.Sealed, "1"); err != nil {
		return err
	}
	var ended []string
	for _, p := range r.parents {
		ended = append(ended, string(p.info.Session))
		if err := storefile.NoteWrote(c, p.info.Session, p.authored()); err != nil {
			return err
		}
	}
	if !r.copied {
		return nil
	}
	return c.Exec("INSERT OR REPLACE INTO store (key, value) VALUES (?, ?)", storefile.Ended, strings.Join(ended, " "))
}

// close leaves the file as it is.
func (c *child) close() error {
	var err error
	if c.store != nil {
		err = c.store.shelf.close()
	}
	return errors.Join(err, c.p.close())
}

func (d *Directory) discardChild(c *child) error {
	return errors.Join(c.close(), sqlite.Remove(d.options.hooks, c.Path))
}

func abandon(parents map[journal.SessionID]*Store, children []*child) error {
	var errs []error
	for _, p := range parents {
		p.freeze()
	}
	for _, c := range children {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// makeChildren writes the children's files, and records the cut in the parents' files.
// Children that it returns with an error must be discarded.
func (d *Directory) makeChildren(ctx context.Context, id string, cut journal.Cut, parents map[journal.SessionID]*Store) ([]*child, error) {
	var files []*spareFile
	err := withRoom(d, noPaths, func() (err error) {
		files, err = d.spares.take(len(cut.Children))
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []*child
	for i, p := range files {
		c := d.newChild(id, cut, &cut.Children[i], p)
		c.own = ownRowsOf(&cut, i)
		out = append(out, c)
	}
	relate(out, parents)
	askFirst(out)
	// The files are written one after the other: none of this waits for the disk, so
	// starting goroutines would take longer than the work.
	parked := map[journal.SessionID]*parkedParent{}
	for session, p := range parents {
		// The seal shows later whether everything that the parent wrote is present.
		parked[session] = newParkedParent(p)
		if err := parked[session].seal(id); err != nil {
			return out, err
		}
	}
	if err := settleNeeds(out, parents, parked); err != nil {
		return out, err
	}
	return out, d.fillChildren(ctx, out, parents, parked)
}

// askFirst asks the caller for the first records.
func askFirst(children []*child) {
	for _, c := range children {
		if c.plan.First != nil {
			c.first = c.plan.First(c.p.own)
		}
	}
}

// relate sets the relations of each child. A parent that no child names has ended as well,
// and every child records that.
func relate(children []*child, parents map[journal.SessionID]*Store) {
	var siblings []string
	unnamed := maps.Clone(parents)
	for _, c := range children {
		siblings = append(siblings, string(c.Session))
		for _, p := range c.plan.Parents {
			delete(unnamed, p)
		}
	}
	for _, c := range children {
		c.relations = relations{siblings: siblings, parents: slices.Collect(maps.Values(unnamed))}
		for _, p := range c.plan.Parents {
			c.relations.parents = append(c.relations.parents, parents[p])
		}
	}
}

// atOnce runs tasks concurrently: they mostly wait for the disk.
func atOnce(tasks []func() error) error {
	errs := make([]error, len(tasks))
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() { errs[i] = task() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// newChild describes one child.
func (d *Directory) newChild(id string, cut journal.Cut, plan *journal.CutChild, p *spareFile) *child {
	c := &child{Entry: newEntry(plan.StoreSpec, p), plan: plan, p: p}
	c.Cut, c.Kind, c.Created = id, cut.Kind, cut.At
	c.Parents = slices.Clone(plan.Parents)
	for range plan.VolatileParents {
		c.Parents = append(c.Parents, storefile.VolatileParent)
	}
	if len(c.Parents) == 0 { // it has no parents, but was made by the same change
		return c
	}
	siblings := func(p journal.SessionID) (n int) {
		for i := range cut.Children {
			if slices.Contains(cut.Children[i].Parents, p) {
				n++
			}
		}
		return n
	}
	divided := slices.ContainsFunc(plan.Parents, func(p journal.SessionID) bool { return siblings(p) > 1 })
	if cut.Kind == journal.CutMerge || cut.Kind == journal.CutRearrange && len(c.Parents) > 1 {
		c.MergedAt = cut.At
	}
	if cut.Kind == journal.CutSplit || cut.Kind == journal.CutRearrange && divided {
		c.SplitAt = cut.At
	}
	return c
}

// fillChildren writes the children's files, which are not durable yet.
func (d *Directory) fillChildren(ctx context.Context, children []*child, parents map[journal.SessionID]*Store, parked map[journal.SessionID]*parkedParent) error {
	for _, c := range children {
		if err := d.fillChild(ctx, c, parents, parked); err != nil {
			return fmt.Errorf("writing %s: %w", c.Path, err)
		}
	}
	return nil
}

// fillChild writes the file of one child: its live rows, its identity and the first record
// of its log.
func (d *Directory) fillChild(ctx context.Context, c *child, parents map[journal.SessionID]*Store, parked map[journal.SessionID]*parkedParent) (err error) {
	var last uint64
	err = d.fill(c.p, c.Entry, func() error {
		if err := copyHistories(c.p.writer, c.histories); err != nil {
			return err
		}
		for _, session := range c.plan.Parents {
			if err := errors.Join(ctx.Err(), c.own.take(parked[session], &parents[session].info, c.p.writer), parked[session].noteLoss(c.p.writer)); err != nil {
				return err
			}
		}
		if err := errors.Join(c.p.writeOwn(&journal.Record{Meta: c.plan.Meta}), c.relations.write(c.p.c)); err != nil || c.first == nil {
			return err
		}
		if n := len(c.first.Events); n > 0 {
			last = c.first.Events[n-1].ID.Seq
		}
		return c.p.apply([]*journal.Record{c.first})
	})
	if err != nil {
		return err
	}
	if c.first != nil {
		c.noteMeta()
	}
	var from []*Store
	for _, session := range c.plan.Parents {
		from = append(from, parents[session])
	}
	c.store, err = d.newborn(c.Entry, c.p.writer, from, last)
	return err
}

// noteMeta adds the metadata of the first record to that of the session.
func (c *child) noteMeta() {
	for key, value := range c.first.Meta {
		if c.Meta == nil {
			c.Meta = map[string]string{}
		}
		c.Meta[key] = value
	}
}

// commitCut commits the transaction that makes the cut.
func (d *Directory) commitCut(ctx context.Context, id string, cut journal.Cut, parents map[journal.SessionID]*Store, children []*child) error {
	ended := catalog.Wrote{}
	described := catalog.Descriptions{}
	for session, p := range parents {
		ended[session] = p.authored()
		if p.cuts.ending != nil {
			described[session] = *p.cuts.ending
		}
	}
	return d.catalog.Cut(ctx, id, cut.Kind, cut.At, childEntries(children), ended, described)
}

func childEntries(children []*child) (out []catalog.Entry) {
	for _, c := range children {
		out = append(out, c.Entry)
	}
	return out
}
