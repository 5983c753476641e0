package engine

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// sight is what a creature has seen of its surroundings. The mu of the creature's graph guards it.
//
// Nothing is computed when the graph changes: the graph only gets another shape. The
// next look finds out whether that made a difference for the creature.
type sight struct {
	shape    uint64        // of the graph when the creature last looked
	view     *outlook.View // what it saw; nil before the first look
	revision uint64        // of that view, in this run of the engine or an earlier one
	digest   []byte        // of that view without its revision
	notified uint64        // the last revision that a graph_changed delivered, or the first one
}

// reshape records that something changed in the graph that an awareness document may
// show, and wakes the creatures that want to be notified.
func (g section) reshape(w *waker) {
	g.shape = g.engine.shapes.Add(1)
	if w == nil {
		return
	}
	for c := range g.watchers {
		c.wake(g, w)
	}
}

// reshape gives new shapes to the graphs of a change.
func (x *change) reshape() {
	w := &x.wake
	if x.bringsBack() {
		w = nil // nothing runs before the session has been brought back
	}
	for _, g := range x.paused {
		g.reshape(w)
	}
}

// watch and unwatch keep the list of members that are notified of changes.
func (g section) watch(c *creature) {
	if !c.watches {
		return
	}
	if g.watchers == nil {
		g.watchers = map[*creature]bool{}
	}
	g.watchers[c] = true
}

func (g section) unwatch(c *creature) { delete(g.watchers, c) }

// watchesGraph reports whether a module wants notifications of changes.
func watchesGraph(m abi.Module) bool {
	_, found := slices.BinarySearch(m.Info().Exports, abi.ExportGraphChanged)
	return found
}

// curious reports whether the creature must be notified of a change, or at least has
// to check whether there is one.
func (c *creature) curious(g section) bool {
	return c.watches && (c.sight.shape != g.shape || c.sight.revision != c.sight.notified)
}

// hasNews reports whether the creature has yet to be notified of a revision.
func (c *creature) hasNews(g section) bool {
	if !c.curious(g) {
		return false
	}
	c.updateAwareness(g)
	return c.sight.revision != c.sight.notified
}

// updateAwareness returns the creature's current document. The revision rises if the
// document differs from the last one seen. The new revision is written at once, so
// that no number ever stands for two documents.
func (c *creature) updateAwareness(g section) *outlook.View {
	s := &c.sight
	if s.view != nil && s.shape == g.shape {
		return s.view
	}
	s.shape = g.shape
	doc := g.describe(c)
	digest := doc.Digest()
	same := bytes.Equal(digest, s.digest)
	if same && s.view != nil {
		return s.view
	}
	if !same {
		s.revision++
		s.digest = digest
		rec := g.newRecord()
		putCreature(g, rec, c)
		g.append(rec)
	}
	doc.Revision = s.revision
	s.view = outlook.NewView(doc)
	return s.view
}

// behold fixes what the next turn of the creature sees. Most creatures never read the
// document, so nothing is looked up before the first read. The caller owns the creature.
func (c *creature) behold(g section) {
	c.shape, c.facing = g.shape, c.wiring.Load()
	if c.reads {
		c.beheld = c.updateAwareness(g)
	}
}

// beholdAgain fixes what a turn sees when it is run again. It reports whether the
// creature still exists.
func (c *creature) beholdAgain() bool {
	g := c.home.enter()
	if g.none() {
		return false
	}
	defer g.leave()
	c.behold(g)
	return true
}

// awarenessView is what the turn sees, or nil if the creature has been removed. The
// first read of a creature may come too late: if the graph has changed since the turn
// began, the turn is run again, and then finds the document as it was when it began.
func (t *turn) awarenessView() *outlook.View {
	c := t.c
	if !c.reads {
		g := c.home.enter()
		if g.none() {
			return nil
		}
		t.late = g.shape != c.shape
		c.reads, c.beheld = true, c.updateAwareness(g)
		g.leave()
	}
	t.looked = true
	return c.beheld
}

// seen is the revision that the turn has seen, or 0 if it did not read the document. A
// notification of a change counts as a read.
func (t *turn) seen() uint64 {
	if t.looked {
		return t.c.beheld.Revision()
	}
	return t.notice()
}

// notice is the revision that the turn's notification announces, if its delivery is one.
func (t *turn) notice() uint64 {
	if t.kind == abi.KindGraphChanged && t.c.beheld != nil {
		return t.c.beheld.Revision()
	}
	return 0
}

// appendRevision writes the source awareness_revision.
func appendRevision(b []byte, v *outlook.View) []byte { return strconv.AppendUint(b, v.Revision(), 10) }

// changeNotice is the delivery that notifies the creature of its new revision. It is
// in no log, but keeps its id when it is handled again.
func (c *creature) changeNotice(g section) delivery {
	m := message.New(nil, nil)
	m.Kind, m.Time = abi.KindGraphChanged, g.tick()
	m.ID = message.NoticeID(c.id, c.sight.revision)
	return delivery{msg: m}
}

// stored is what a store keeps of it.
func (s *sight) stored() *specs.Seen {
	if s.revision == 0 {
		return nil
	}
	return &specs.Seen{Revision: s.revision, Digest: s.digest, Notified: s.notified}
}
