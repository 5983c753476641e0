package sqlitestore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// stopPoints are where a life ends in the turn that reaches the limit, and at which pass of the
// point. First the turn's order is appended. Then the parents stand still for the cut, whose
// first records have the turn. The record that is appended after that has the stop.
var stopPoints = []struct {
	point  failpoint.Point
	pass   int32
	always bool // the turn is logged by then, and the stop is not, so that this is always tried
}{
	{failpoint.Appending, 1, false}, {failpoint.Appended, 1, false}, {failpoint.Parked, 1, false}, {failpoint.Filling, 1, false},
	{failpoint.Filled, 1, false}, {failpoint.Cutting, 1, false}, {failpoint.Cut, 1, true}, {failpoint.Frozen, 1, true},
	{failpoint.Appending, 2, false}, {failpoint.Appended, 2, false}, {failpoint.Appended, 3, false}, {failpoint.Loose, 1, false},
}

// TestKilledWhileStopping kills a process in the turn in which a recipe reaches the limit of a
// stop_when block. This turn splits or merges the graph, so it is logged with the cut, and the
// stop is in another record. The next process resumes with the same recipe.
//
// After the kill, the store has counted exactly the turns that the log has. After the resume,
// the recipe has stopped at exactly its limit, the log has this stop once, and no order is
// lost: a recipe with a higher limit continues with the next order.
func TestKilledWhileStopping(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	b := &stopReports{t: t, dir: t.TempDir(), cache: t.TempDir()}
	const without = 2
	b.live(stopping{Limit: 1 << 40, Goal: without}, failpoint.Count+1, 1)
	begun := b.look()
	b.starts, b.handled = begun.turns-without, without
	if begun.stops > 0 || begun.answers != without || begun.graphs != 1 {
		t.Fatalf("after the first life, the session is %+v", begun)
	}
	between := 0
	for i, at := range stopPoints {
		if !at.always && !seeded.Part(i, len(stopPoints)) {
			continue
		}
		for range 2 { // a split, and a merge
			if b.stop(at.point, at.pass) {
				between++
			}
		}
	}
	if between < 4 {
		t.Errorf("only %d lives ended between the record of the turn and that of the stop", between)
	}
	b.live(stopping{Limit: 1 << 40, Goal: b.handled + waiting}, failpoint.Count+1, 1)
	if got := b.look(); got.answers != int64(b.handled+waiting) || got.turns != b.starts+got.answers || got.stopped {
		t.Errorf("in the end, %d orders were sent, but the session is %+v", b.handled+waiting, got)
	}
	t.Logf("%d stops, %d of them after a kill between the two records", b.stops, between)
}

// waiting is how many orders a recipe that has stopped leaves unhandled.
const waiting = 2

// stopReports is what the lives of one directory have left.
type stopReports struct {
	t          *testing.T
	dir, cache string
	starts     int64  // turns that no order has caused
	handled    uint64 // orders
	stops      int64  // that the log must have
}

// stop lets a life end in the turn that reaches a limit, and lets the next life stop there. It
// reports whether the killed life had logged the turn, but not the stop.
func (b *stopReports) stop(point failpoint.Point, pass int32) (between bool) {
	b.t.Helper()
	last := b.handled + waiting + 1
	order := stopping{Limit: b.starts + int64(last), Goal: last + waiting, Armed: last}
	b.live(order, point, pass)
	killed := b.look()
	between = killed.turns == order.Limit && killed.stops == b.stops
	if killed.turns > order.Limit || killed.stops > b.stops+1 || killed.stops > b.stops && killed.turns < order.Limit {
		b.t.Errorf("the limit is %d turns, but the session after the kill is %+v", order.Limit, killed)
	}
	order.Armed = order.Goal + 1
	b.live(order, failpoint.Count+1, 1)
	b.handled, b.stops = last, b.stops+1
	if got := b.look(); got.turns != order.Limit || got.stops != b.stops || !got.stopped || got.answers != int64(last) || got.graphs != 1+int(last%2) {
		b.t.Errorf("the limit is %d turns with stop number %d, but the resumed session is %+v", order.Limit, b.stops, got)
	}
	if b.t.Failed() {
		b.t.Fatalf("after a life that was to end at %s, pass %d, in order %d; it had left %+v", pointName(min(point, failpoint.Count)), pass, last, killed)
	}
	return between
}

// live lets a process run until it dies at the point, or reaches its end.
func (b *stopReports) live(s stopping, point failpoint.Point, pass int32) {
	b.t.Helper()
	s.Cache = b.cache
	a := &errand{Word: "stop", Stop: &s}
	_, done := a.sendOff(b.t, order{Dir: b.dir, Point: point, Pass: pass}, nil)
	if point > failpoint.Count && !done {
		b.t.Fatal("the life did not reach its end")
	}
}

// stopState describes the session that has the creature that takes the orders.
type stopState struct {
	turns, stops, answers int64 // by the log
	stopped               bool
	graphs                int // that are live
}

// look reads the state of the session, and compares its log with its counters.
func (b *stopReports) look() (s stopState) {
	b.t.Helper()
	v, err := OpenReadOnly(b.t.Context(), b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	graphs, problems, err := v.Live(b.t.Context())
	if err != nil || len(problems) > 0 {
		b.t.Fatal(problems, err)
	}
	s.graphs = len(graphs)
	found := false
	for i := range graphs {
		g := &graphs[i]
		wantWhole(b.t, v, g.Session)
		if slices.ContainsFunc(g.Creatures, func(c journal.CreatureRow) bool { return c.Name == "lead" }) {
			found = true
			b.count(&s, v, g)
		}
	}
	if !found {
		b.t.Fatal("no live graph has the creature")
	}
	return s
}

func (b *stopReports) count(s *stopState, v *View, g *journal.SavedGraph) {
	b.t.Helper()
	events, err := v.History(b.t.Context(), g.Session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		b.t.Fatal(err)
	}
	answers := journal.ChannelID("")
	for _, c := range g.Channels {
		if c.Name == "answers" {
			answers = c.ID
		}
	}
	for i := range events {
		switch ev := &events[i]; {
		case ev.Kind == journal.EventTurnEnded:
			s.turns++
		case ev.Kind == journal.EventRecipeStopped:
			s.stops++
		case ev.Channel == answers && ev.Kind.IsMessage():
			s.answers++
			if want := fmt.Sprintf(`{"id":%d,"results":[{"ok":true,`, s.answers); !strings.HasPrefix(string(ev.Payload), want) {
				b.t.Errorf("the answer is %s, but the next order is %d", ev.Payload, s.answers)
			}
		}
	}
	s.stopped = len(g.Stopped()) > 0
	counted := int64(0)
	for key, value := range g.Meta {
		if strings.HasPrefix(key, "stop creature ") {
			var c struct{ Turns int64 }
			if err := json.Unmarshal([]byte(value), &c); err != nil {
				b.t.Fatal(err)
			}
			counted += c.Turns
		}
	}
	if counted != s.turns {
		b.t.Errorf("the store has counted %d turns, but the log has %d", counted, s.turns)
	}
}
