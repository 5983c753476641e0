package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"pgregory.net/rapid"
)

// sayTo sends a direct message.
func (w *world) sayTo(c journal.CreatureID, text string) {
	w.t.Helper()
	if _, err := w.SendTo(w.t.Context(), c, engine.Outgoing{Payload: []byte(text)}); err != nil {
		w.t.Fatal(err)
	}
}

// until reads a subscription up to the event with a payload. It returns the events up
// to and including that one, and the cursor to continue from.
func (w *world) until(sub *engine.Subscription, payload string) (out []journal.Event, cursor journal.EventCursor) {
	w.t.Helper()
	for {
		ob, err := sub.Next(w.t.Context())
		if err != nil {
			w.t.Fatalf("%v, after %d events", err, len(out))
		}
		if err := checkPayload(&ob.Event); err != nil {
			w.t.Errorf("the payload %s of a %s: %v", ob.Event.Payload, ob.Event.Kind, err)
		}
		if out = append(out, ob.Event); string(ob.Event.Payload) == payload || payload == "" && ob.Missed > 0 {
			return out, sub.Cursor()
		}
	}
}

func (w *world) after(f engine.Filter, cursor journal.EventCursor, buffer int) *engine.Subscription {
	w.t.Helper()
	sub, err := w.SubscribeAfter(w.t.Context(), f, cursor, buffer)
	if err != nil {
		w.t.Fatal(err)
	}
	return sub
}

func wantEvents(t *testing.T, what string, got, want []journal.Event) {
	t.Helper()
	text := func(list []journal.Event) (out []string) {
		for _, ev := range list {
			out = append(out, fmt.Sprintf("%s %s %s", ev.ID, ev.Kind, ev.Payload))
		}
		return out
	}
	if !slices.Equal(text(got), text(want)) {
		t.Errorf("%s: %q, want %q", what, text(got), text(want))
	}
}

// A subscription follows a creature by its id through a merge, a split and a restart,
// and a graph by an id that it had before all of them.
func TestSubscribeAfterFollows(t *testing.T) {
	s := newSaved(t, engine.Options{Durability: journal.Normal})
	left, right := s.add("left", "count"), s.add("right", "count")
	old := map[journal.CreatureID]journal.GraphID{left: s.graph(left), right: s.graph(right)}
	about := engine.Filter{Creatures: []journal.CreatureID{left}, Kinds: []journal.EventKind{journal.EventOutput}}
	sub := s.Subscribe(about, 0)
	tell := func(text string) {
		t.Helper()
		for _, c := range []journal.CreatureID{left, right} {
			s.sayTo(c, text)
		}
		s.wait()
	}
	tell("apart")
	first, cursor := s.until(sub, "apart")
	s.connect(left, right, "link")
	tell("joined")
	s.reopen()
	tell("again")
	s.change(topology.Disconnect{From: left, To: right})
	tell("parted")

	whole, _ := s.until(s.after(about, journal.FromStart, 0), "parted")
	rest, end := s.until(s.after(about, cursor, 1), "parted")
	var said []string
	for _, ev := range whole {
		said = append(said, string(ev.Payload))
	}
	if want := []string{"apart", "joined", "again", "parted"}; !slices.Equal(said, want) {
		t.Errorf("the subscriber saw the messages %q, want %q", said, want)
	}
	wantEvents(t, "the events watched and those after them", append(first, rest...), whole)
	tell("end")
	if more, _ := s.until(s.after(about, end, 0), "end"); len(more) != 1 {
		t.Errorf("there are %d events after the last cursor, want one", len(more))
	}
	for c, graph := range old {
		f := engine.Filter{Graphs: []journal.GraphID{graph}, Kinds: about.Kinds}
		got, _ := s.until(s.after(f, journal.FromStart, 0), "end")
		counts := map[string]int{}
		for _, ev := range got {
			counts[string(ev.Payload)]++
		}
		if counts["joined"] != 2 || counts["again"] != 2 || counts["apart"] == 0 || counts["parted"] == 0 {
			t.Errorf("the subscriber to the first graph of %s saw %v", c, counts)
		}
	}
}

// A subscriber that fell behind catches up on exactly the events that were left out.
func TestLaggedCatchesUp(t *testing.T) {
	s := newSaved(t, engine.Options{Durability: journal.Normal})
	c := s.add("busy", "count")
	kinds := engine.Filter{Kinds: []journal.EventKind{journal.EventOutput, journal.EventLagged}}
	slow, quick := s.Subscribe(kinds, 3), s.Subscribe(kinds, 0)
	for i := range 20 {
		s.sayTo(c, fmt.Sprint(i))
	}
	s.wait()
	all, _ := s.until(quick, "19")
	got, _ := s.until(slow, "")
	lagged := got[len(got)-1]
	var payload journal.LaggedPayload
	if err := json.Unmarshal(lagged.Payload, &payload); err != nil || lagged.Kind != journal.EventLagged || payload.Missed != 17 {
		t.Fatalf("the last event is %s %s, %v; want lagged by 17", lagged.Kind, lagged.Payload, err)
	}
	rest, _ := s.until(s.after(kinds, payload.Cursor, 3), "19")
	wantEvents(t, "the events received and caught up on", append(got[:len(got)-1], rest...), all)
}

// A cursor that does not belong to the session directory is refused, with a remedy.
func TestSubscribeAfterRefuses(t *testing.T) {
	s, other := newSaved(t, engine.Options{}), newSaved(t, engine.Options{})
	s.add("here", "count")
	other.add("there", "count")
	cursor := other.Subscribe(engine.Filter{}, 0).Cursor()
	for _, c := range []struct {
		after journal.EventCursor
		code  abi.Code
	}{
		{"", abi.InvalidArgument}, {"begin", abi.InvalidArgument}, {cursor[:len(cursor)-2], abi.InvalidArgument},
		{cursor + "AAAA", abi.InvalidArgument}, {cursor, abi.NotFound},
	} {
		_, err := s.SubscribeAfter(t.Context(), engine.Filter{}, c.after, 0)
		if abi.CodeOf(err) != c.code {
			t.Errorf("after %q: %v, want %s", c.after, err, c.code)
		}
	}
	volatile := newWorld(t, engine.Options{})
	if _, err := volatile.SubscribeAfter(t.Context(), engine.Filter{}, journal.FromStart, 0); abi.CodeOf(err) != abi.Unsupported {
		t.Errorf("without a session directory: %v", err)
	}
	sub := s.after(engine.Filter{}, journal.FromStart, 0)
	sub.Close()
	if _, err := sub.Next(t.Context()); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Next of a closed subscription that has not caught up: %v", err)
	}
}

// A cursor of any position reads back as the same position, and any modification of it
// is detected.
func TestCursorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		through := journal.SessionID(rapid.String().Draw(t, "through"))
		marks := rapid.MapOf(rapid.Map(rapid.String(), func(s string) journal.SessionID { return journal.SessionID(s) }), rapid.Custom(func(t *rapid.T) journal.Mark {
			var o journal.Origin
			copy(o[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "origin"))
			return journal.Mark{Event: journal.EventID{Origin: o, Seq: rapid.Uint64().Draw(t, "seq")}, Since: rapid.Int64().Draw(t, "since")}
		})).Draw(t, "marks")
		cursor := engine.MakeCursor(through, marks)
		if back, err := engine.RemakeCursor(cursor); err != nil || back != cursor {
			t.Fatalf("%q came back as %q: %v", cursor, back, err)
		}
		at := rapid.IntRange(0, len(cursor)-1).Draw(t, "at")
		bad := []byte(cursor)
		bad[at] = "AB"[btoi(bad[at] == 'A')]
		if _, err := engine.RemakeCursor(journal.EventCursor(bad)); abi.CodeOf(err) != abi.InvalidArgument {
			t.Fatalf("the cursor %q, changed to %q, is accepted: %v", cursor, bad, err)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Poll returns the stored events and those of the ring, and does not wait for more.
func TestPollDoesNotWait(t *testing.T) {
	s := newSaved(t, engine.Options{Durability: journal.Normal})
	c := s.add("here", "count")
	say := func(text string) {
		s.sayTo(c, text)
		s.wait()
	}
	say("stored")
	sub := s.after(engine.Filter{Kinds: []journal.EventKind{journal.EventOutput}}, journal.FromStart, 0)
	poll := func(want string) {
		t.Helper()
		ob, ok, err := sub.Poll(t.Context())
		if err != nil || ok != (want != "") || string(ob.Event.Payload) != want {
			t.Errorf("Poll returned %q, %v, %v; want %q", ob.Event.Payload, ok, err, want)
		}
	}
	poll("stored")
	poll("")
	say("new")
	poll("new")
	poll("")
	sub.Close()
	if _, _, err := sub.Poll(t.Context()); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Poll of a closed subscription: %v", err)
	}
}
