package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// reached returns the number of the last event of an origin that a file has, and the chain
// at the event at. The chain is 0 if the file lacks that event or the event is in no
// chain.
func (s *snapshot) reached(ctx context.Context, origin journal.Origin, at uint64) (last uint64, chain uint32, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var highest, sum int64
		err := scan(&highest, &sum)
		last, chain = uint64(highest&storefile.SeqMask), storefile.ChainOf(sum)
		return err
	}, `SELECT coalesce((SELECT max(id) FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40), 0),
		coalesce((SELECT sum FROM event WHERE id = o.no << 40 | ?2), 0) FROM origin o WHERE o.uuid = ?1`, origin[:], int64(at&storefile.SeqMask))
	return last, chain, err
}

// lostEnd returns an error that names the acknowledged events that a session has lost, or
// nil.
func (v *familySnapshot) lostEnd(ctx context.Context, e catalog.Entry, a catalog.Ack) (loss, err error) {
	last, chain, err := v.files[0].reached(ctx, a.Origin, a.Seq)
	if err != nil || last >= a.Seq && (chain == a.Chain || a.Chain == 0) {
		return nil, err
	}
	if pruned, err := v.files[0].pruned(ctx); err != nil || last == 0 && pruned {
		return nil, err // everything written under that origin has been pruned
	}
	first := journal.EventID{Origin: a.Origin, Seq: min(last+1, a.Seq)}
	said := journal.EventID{Origin: a.Origin, Seq: a.Seq}
	lost := &abi.Error{
		Code: abi.Storage, Op: "open", IDs: map[string]string{"path": e.Path, "session": string(e.Session), "event": first.String()},
		Message: fmt.Sprintf("session %s has lost the events %s to %s, which had been acknowledged: %s-wal is missing, cut short or altered", e.Session, first, said, filepath.Base(e.Path)),
		Remedy:  "everything before them is present, and the session continues from there. If you have a copy of both files, restore it while no process uses the directory; terrarium session verify names the missing events",
	}
	switch {
	case last >= a.Seq:
		lost.Message = fmt.Sprintf("session %s has an event %s that is not the acknowledged one: %s or its -wal file was altered or replaced", e.Session, said, filepath.Base(e.Path))
	case a.Excused(e.Durability):
		lost.Message = fmt.Sprintf("session %s has lost the events %s to %s, which had been acknowledged: the machine has stopped since, and the durability normal then promises only a prefix of the log", e.Session, first, said)
		lost.Remedy = "the session continues from what it still has; send the missing messages again. With the durability full, nothing is lost when the power fails"
		return lost, nil
	}
	return lost.With(journal.CutShortID, string(e.Session)), nil
}

// takeAcks opens the file that records how far logs were acknowledged.
func (d *Directory) takeAcks(ctx context.Context) error {
	entries, err := d.catalog.Entries(ctx)
	if err != nil {
		return err
	}
	live := map[journal.SessionID]bool{}
	for _, e := range entries {
		live[e.Session] = e.Live
	}
	d.acks, err = catalog.OpenAcks(d.dir, func(s journal.SessionID) bool { return live[s] })
	return err
}

// lostEnd returns an error that names the events that earlier processes acknowledged and
// that a live session has lost, or nil.
func (d *Directory) lostEnd(ctx context.Context, e catalog.Entry, f *family) (lost, err error) {
	if a, said := d.acks.Said(e.Session); said {
		return f.lostEnd(ctx, e, a)
	}
	return nil, nil
}

// lostEnd returns an error that names the acknowledged events that the session of a file
// has lost, or nil.
func (f *family) lostEnd(ctx context.Context, e catalog.Entry, a catalog.Ack) (lost, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	lost, err = v.lostEnd(ctx, e, a)
	return lost, errors.Join(err, v.end())
}

// settle moves the record of how far a session was acknowledged to the catalogue, before
// the session is opened for writing. If events were lost without damage, it records what
// is left. From then on, a loss is not reported again. The record need not be durable,
// since the log is.
func (d *Directory) settle(ctx context.Context, e catalog.Entry, f *family) error {
	v, err := f.look(ctx)
	if err != nil {
		return err
	}
	marks, err := v.files[0].ends(ctx)
	a, said := d.acks.Said(e.Session)
	there := marks[a.Origin]
	if err == nil && said && !a.Excused(e.Durability) && marks[a.Origin].Seq <= a.Seq {
		marks[a.Origin] = a
	}
	if endErr := v.end(); err == nil {
		err = endErr
	}
	if err != nil {
		return err
	}
	if err := d.catalog.Mark(e.Session, marks); err != nil {
		return err
	}
	if said {
		d.acks.Settle(e.Session, there)
	}
	return nil
}

// pruned reports whether the file may have been pruned.
func (s *snapshot) pruned(ctx context.Context) (pruned bool, err error) {
	err = sqlite.Each(ctx, s.tx, func(func(...any) error) error {
		pruned = true
		return nil
	}, "SELECT 1 FROM store WHERE key = '"+storefile.Pruned+"'")
	return pruned, err
}

// ends returns the last event of each origin under which the session of a file has
// written.
func (s *snapshot) ends(ctx context.Context) (map[journal.Origin]catalog.Ack, error) {
	out := map[journal.Origin]catalog.Ack{}
	err := sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var uuid []byte
		var id, sum int64
		if err := scan(&uuid, &id, &sum); err != nil {
			return err
		}
		origin, err := storefile.OriginIn(uuid)
		out[origin] = catalog.Ack{Origin: origin, Seq: uint64(id & storefile.SeqMask), Chain: storefile.ChainOf(sum)}
		return err
	}, `SELECT w.uuid, e.id, e.sum FROM own w JOIN origin o ON o.uuid = w.uuid
		JOIN event e ON e.id = (SELECT max(id) FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40)`)
	return out, err
}

// ends checks that the last acknowledged events of the session are present and unchanged.
func (v *verification) ends() error {
	for _, a := range v.acknowledged {
		last, chain, err := v.snapshot.files[0].reached(v.ctx, a.Origin, a.Seq)
		if err != nil {
			return err
		}
		said := journal.EventID{Origin: a.Origin, Seq: a.Seq}
		switch {
		case last == 0 && v.pruned > 0:
		case last < a.Seq:
			v.missing(journal.EventID{Origin: a.Origin, Seq: last + 1}, said)
			v.damage(fmt.Sprintf("the end of the log is missing: it was acknowledged up to the event %s", said))
		case chain != 0 && a.Chain != 0 && chain != a.Chain:
			v.damage(fmt.Sprintf("the event %s is not the one that was acknowledged: its checksum differs", said))
		}
	}
	return nil
}
