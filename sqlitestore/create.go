package sqlitestore

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
)

// Create makes the stores of new graphs. Their files are written and made durable; then
// one transaction adds them to the catalogue as sessions. If it fails, or the process ends
// earlier, none of them exists.
func (d *Directory) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	for _, spec := range specs {
		if err := checkSpec("create", spec); err != nil {
			return nil, err
		}
	}
	if len(specs) == 0 {
		return nil, nil
	}
	if err := d.setLeftAside(); err != nil {
		return nil, err
	}
	var out []journal.Store
	err := withRoom(d, noPaths, func() (err error) {
		out, err = d.create(ctx, specs)
		return err
	})
	return out, err
}

// create is [Directory.Create] for valid specifications.
func (d *Directory) create(ctx context.Context, specs []journal.StoreSpec) ([]journal.Store, error) {
	var made []*child
	for i := range specs {
		p, err := d.newFile()
		if err != nil {
			return nil, storageError("create", d.dir, err)
		}
		c := &child{Entry: newEntry(specs[i], p), plan: &journal.CutChild{StoreSpec: specs[i]}, p: p}
		c.Created, c.Complete = cmp.Or(specs[i].At, d.options.Now().UnixNano()), true
		made = append(made, c)
	}
	err := d.writeNew(ctx, made)
	if err == nil {
		err = d.catalog.Create(childEntries(made))
	}
	switch {
	case errors.Is(err, catalog.ErrUnknown):
		return nil, errors.Join(err, abandon(nil, made))
	case err != nil:
		for _, c := range made {
			err = errors.Join(err, d.discardChild(c))
		}
		return nil, storageError("create", d.dir, err)
	}
	out := make([]journal.Store, len(made))
	for i, c := range made {
		c.store.stateless.Store(c.first == nil || len(c.first.State) == 0)
		out[i] = d.remember(c.store)
	}
	return out, nil
}

// writeNew writes the files of new sessions, durably. The stores are asleep at first, and
// the files are marked as unused. When the catalogue has a session, its store wakes up to
// remove the mark.
func (d *Directory) writeNew(ctx context.Context, made []*child) error {
	defer nudge(d.spares.wake) // for their cuts
	relate(made, nil)
	askFirst(made)
	if err := d.printNew(ctx, made); err != nil {
		return err
	}
	for _, c := range made {
		var last uint64
		if c.first != nil {
			c.noteMeta()
			if n := len(c.first.Events); n > 0 {
				last = c.first.Events[n-1].ID.Seq
			}
		}
		var err error
		if c.store, err = d.newborn(c.Entry, c.p.writer, nil, last); err != nil {
			return err
		}
		c.store.sleep.asleep = true
	}
	return nil
}
