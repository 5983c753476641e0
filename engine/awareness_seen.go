package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// sight is what a creature has seen of its surroundings. The mu of the
// creature's graph guards it.
//
// Nothing is computed when the graph changes: the graph gets another shape, and
// whoever looks next finds out whether that made a difference to it.
type sight struct {
	shape    uint64        // of the graph when the creature last looked
	view     *outlook.View // what it saw; nil before the first look
	revision uint64        // of what it saw, here or in an earlier run of the engine
	digest   []byte        // of what it saw, but for the revision
	told     uint64        // revision that it has been told of by graph_changed, or began with
}

// reshape notes that something has changed in the graph that an awareness
// document may show, and wakes the creatures that want to hear of it. The caller
// holds mu.
func (g *graph) reshape(w *waker) {
	g.shape = g.engine.shapes.Add(1)
	if w == nil {
		return
	}
	for c := range g.watchers {
		c.wake(w)
	}
}

// reshape notes that the graphs of a change are not what they were.
func (x *change) reshape() {
	w := &x.wake
	if x.bringsBack() {
		w = nil // nothing runs before the session has been brought back
	}
	for g := range x.paused {
		g.reshape(w)
	}
}

// watch and unwatch keep the list of those members that are told of changes.
func (g *graph) watch(c *creature) {
	if !c.watches {
		return
	}
	if g.watchers == nil {
		g.watchers = map[*creature]bool{}
	}
	g.watchers[c] = true
}

func (g *graph) unwatch(c *creature) { delete(g.watchers, c) }

// watchesGraph reports whether a module wants to be told of changes.
func watchesGraph(m abi.Module) bool {
	_, found := slices.BinarySearch(m.Info().Exports, abi.ExportGraphChanged)
	return found
}

// curious reports whether the creature has to be told of a change, or at least
// to look whether there is one. The caller holds mu.
func (c *creature) curious() bool {
	if !c.watches {
		return false
	}
	g := c.home.load()
	return g != nil && (c.sight.shape != g.shape || c.sight.revision != c.sight.told)
}

// hasNews reports whether there is a revision that the creature has not been told
// of. The caller holds the mu of g, which the creature is in.
func (c *creature) hasNews(g *graph) bool {
	if !c.curious() {
		return false
	}
	c.updateAwareness(g)
	return c.sight.revision != c.sight.told
}

// updateAwareness returns the creature's document as it is now. The revision rises if it is
// not the one that was last seen; a rise is written down at once, so that no
// number ever stands for two documents. The caller holds the mu of g, which the
// creature is in.
func (c *creature) updateAwareness(g *graph) *outlook.View {
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
		putCreature(rec, c)
		g.append(rec)
	}
	doc.Revision = s.revision
	s.view = outlook.NewView(doc)
	return s.view
}

// behold fixes what the next turn of the creature sees. Most creatures never
// ask, so nothing is looked up for one that has not yet. The caller holds the mu
// of g, and the creature is in the caller's hands.
func (c *creature) behold(g *graph) {
	c.shape, c.facing = g.shape, c.wiring.Load()
	if c.reads {
		c.beheld = c.updateAwareness(g)
	}
}

// beholdAgain fixes what a turn sees that is run again. It reports whether the
// creature is still there.
func (c *creature) beholdAgain() bool {
	g := c.home.lock()
	if g == nil {
		return false
	}
	defer g.mu.Unlock()
	c.behold(g)
	return true
}

// awarenessView is what the turn sees, or nil if the creature is gone. The first time
// ever that a creature asks, it may be too late: if the graph has changed since
// the turn began, the turn is run again, and this time finds what there was when
// it began.
func (t *turn) awarenessView() *outlook.View {
	c := t.c
	if !c.reads {
		g := c.home.lock()
		if g == nil {
			return nil
		}
		t.late = g.shape != c.shape
		c.reads, c.beheld = true, c.updateAwareness(g)
		g.mu.Unlock()
	}
	t.looked = true
	return c.beheld
}

// seen is the revision that the turn has seen, or 0 if it did not ask. That a
// creature is told of a change counts as asking.
func (t *turn) seen() uint64 {
	if t.looked {
		return t.c.beheld.Revision()
	}
	return t.notice()
}

// notice is the revision that the turn is told of, if it is told of one.
func (t *turn) notice() uint64 {
	if t.kind == abi.KindGraphChanged && t.c.beheld != nil {
		return t.c.beheld.Revision()
	}
	return 0
}

// appendRevision writes the source awareness_revision.
func appendRevision(b []byte, v *outlook.View) []byte { return strconv.AppendUint(b, v.Revision(), 10) }

// changeNotice is the delivery that tells the creature of its new revision. It
// is in no log, but it has an id that is the same when it is handled again.
func (c *creature) changeNotice(g *graph) delivery {
	m := message.New(nil, nil)
	m.Kind, m.Time = abi.KindGraphChanged, g.tick()
	m.ID = message.NoticeID(c.id, c.sight.revision)
	return delivery{msg: m}
}

// noteDealt notes that a creature has dealt with a delivery, and reports whether its row
// says so: of start, and of those that tell it how things are. The caller holds mu.
func (c *creature) noteDealt(kind abi.Kind) bool {
	start := kind == abi.KindStart
	c.started = c.started || start
	if !c.watches || c.beheld == nil || !start && kind != abi.KindGraphChanged {
		return start
	}
	c.sight.told = c.beheld.Revision()
	return true
}

// storedSight is the part of a creature's sight that a [journal.CreatureRow] keeps.
type storedSight struct {
	Revision uint64 `json:"revision"`
	Digest   []byte `json:"digest"`
	Told     uint64 `json:"told,omitempty"`
}

func (s *sight) stored() *storedSight {
	if s.revision == 0 {
		return nil
	}
	return &storedSight{s.revision, s.digest, s.told}
}

// sightOf is what a saved creature had seen.
func sightOf(row *journal.CreatureRow) sight {
	var spec struct {
		Awareness storedSight `json:"awareness"`
	}
	if json.Unmarshal(row.Spec, &spec) != nil {
		return sight{}
	}
	a := spec.Awareness
	return sight{revision: a.Revision, digest: a.Digest, told: a.Told}
}
