package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/seed47132306/terrarium/engine"
)

// Cut turns live parents into children. The children's files are written
// first and made durable; then one transaction of the catalogue makes the cut.
// Until then a failure, or the end of the process, leaves the parents as they
// were; from then on the children live and the parents are never written again.
// Only if the catalogue can neither be written nor read right then, both sides
// are closed, and the next start goes on with one of them.
func (d *Directory) Cut(ctx context.Context, cut engine.Cut) ([]engine.Store, error) {
	parents, err := d.parents(cut)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	defer resumeAll(parents)
	for _, p := range parents {
		if err := p.park(ctx); err != nil {
			return nil, err
		}
	}
	children, err := d.makeChildren(ctx, id.String(), cut, parents)
	if err == nil {
		err = d.commitCut(id.String(), cut, parents, children)
	}
	switch {
	case errors.Is(err, errUnknown):
		// Either side may turn out to be the live one, so neither may go on.
		return nil, errors.Join(err, abandon(parents, children))
	case err != nil:
		for _, c := range children {
			err = errors.Join(err, c.discard())
		}
		return nil, storageError("cut", d.dir, err)
	}
	for _, p := range parents {
		p.freeze()
	}
	out := make([]engine.Store, len(children))
	for i, c := range children {
		out[i] = d.remember(c.store)
	}
	return out, nil
}

// parents checks that the cut is about stores of this directory.
func (d *Directory) parents(cut engine.Cut) (map[engine.SessionID]*Store, error) {
	if !slices.Contains([]string{"merge", "split", "rearrange"}, cut.Kind) {
		return nil, invalid("cut", fmt.Sprintf("%q is not a kind of cut", cut.Kind), "use merge, split or rearrange")
	}
	parents := map[engine.SessionID]*Store{}
	for _, p := range cut.Parents {
		s, ok := p.(*Store)
		if !ok || d.opened(s.info.Session) != s {
			return nil, invalid("cut", "a parent is not an open store of this directory", "open it first")
		}
		parents[s.info.Session] = s
	}
	for _, c := range cut.Children {
		for _, p := range c.Parents {
			if parents[p] == nil {
				return nil, invalid("cut", fmt.Sprintf("a child names the parent %s, which is not part of the cut", p), "name it among the parents")
			}
		}
	}
	return parents, nil
}

func resumeAll(parents map[engine.SessionID]*Store) {
	for _, p := range parents {
		p.resume()
	}
}

// child is a store that waits for its cut to be committed.
type child struct {
	entry
	w     *writer
	store *Store
}

// close leaves the file as it is. What has not been opened is closed already.
func (c *child) close() error {
	var err error
	if c.store != nil {
		err = c.store.reads.close()
	}
	if c.w != nil {
		err = errors.Join(err, c.w.close())
	}
	return err
}

func (c *child) discard() error { return errors.Join(c.close(), removeDatabase(c.Path)) }

func abandon(parents map[engine.SessionID]*Store, children []*child) error {
	var errs []error
	for _, p := range parents {
		p.freeze()
	}
	for _, c := range children {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// makeChildren writes the children's files. What it returns with an error is
// to be discarded.
func (d *Directory) makeChildren(ctx context.Context, id string, cut engine.Cut, parents map[engine.SessionID]*Store) ([]*child, error) {
	offspring := map[engine.SessionID]int{}
	for _, c := range cut.Children {
		for _, p := range c.Parents {
			offspring[p]++
		}
	}
	var out []*child
	for i := range cut.Children {
		plan := &cut.Children[i]
		e, err := newEntry(plan.StoreSpec)
		if err != nil {
			return out, err
		}
		e.cut, e.Created, e.Path = id, cut.At, d.catalog.storePath(e.Session)
		e.Parents = slices.Clone(plan.Parents)
		for range plan.VolatileParents {
			e.Parents = append(e.Parents, volatileParent)
		}
		divided := slices.ContainsFunc(plan.Parents, func(p engine.SessionID) bool { return offspring[p] > 1 })
		if cut.Kind == "merge" || cut.Kind == "rearrange" && len(e.Parents) > 1 {
			e.MergedAt = cut.At
		}
		if cut.Kind == "split" || cut.Kind == "rearrange" && divided {
			e.SplitAt = cut.At
		}
		c := &child{entry: e}
		out = append(out, c)
		if err := d.fillChild(ctx, c, plan, parents); err != nil {
			return out, fmt.Errorf("writing %s: %w", e.Path, err)
		}
	}
	return out, nil
}

// fillChild writes one child: history, live rows, its own identity and the
// first record of its log.
func (d *Directory) fillChild(ctx context.Context, c *child, plan *engine.CutChild, parents map[engine.SessionID]*Store) (err error) {
	if c.w, err = d.prepare(c.entry, plan.Meta); err != nil {
		return err
	}
	// The largest history comes first: into an empty file it is copied as it
	// is, while the others are inserted event by event.
	paths := slices.Clone(plan.Parents)
	slices.SortStableFunc(paths, func(a, b engine.SessionID) int {
		return cmp.Compare(diskSize(parents[b].path), diskSize(parents[a].path))
	})
	own := belongings{creatures: plan.Creatures, channels: plan.Channels}
	if err := own.load(c.w); err != nil {
		return err
	}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyParent(c.w, parents[p].path); err != nil {
			return fmt.Errorf("copying %s: %w", parents[p].path, err)
		}
	}
	var first uint64
	err = c.w.c.transact(func() error {
		if err := c.w.identify(c.entry); err != nil || plan.First == nil {
			return err
		}
		r := plan.First(c.w.own)
		if r == nil {
			return nil
		}
		if n := len(r.Events); n > 0 {
			first = r.Events[n-1].ID.Seq
		}
		return c.w.apply([]*engine.Record{r})
	})
	if err != nil {
		return err
	}
	if err := d.settle(c.w); err != nil {
		return err
	}
	c.store, err = d.attach(ctx, c.entry, c.w, first)
	return err
}

// commitCut is the moment of the cut. What the parents have written is made
// durable before, so that no history can vanish behind it.
func (d *Directory) commitCut(id string, cut engine.Cut, parents map[engine.SessionID]*Store, children []*child) error {
	var ended []engine.SessionID
	for session, p := range parents {
		if p.durability == engine.Normal {
			if err := p.w.sync(); err != nil {
				return err
			}
		}
		ended = append(ended, session)
	}
	slices.Sort(ended)
	return d.catalog.commit(d.options.hooks, func() error {
		if err := d.catalog.c.exec("INSERT INTO cut (id, kind, at) VALUES (?, ?, ?)", id, cut.Kind, cut.At); err != nil {
			return err
		}
		for _, c := range children {
			if err := d.catalog.add(c.entry); err != nil {
				return err
			}
		}
		return d.catalog.freeze(ended, id)
	}, "SELECT 1 FROM cut WHERE id = ?", id)
}
