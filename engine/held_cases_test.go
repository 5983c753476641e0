package engine_test

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// heldCase is what happens while the turn of h is held, and its expected outcome.
type heldCase struct {
	name    string
	do      func(w *town)
	b, c    string   // messages that they receive
	letters []string // reasons, in the graph of h
}

var heldCases = []heldCase{
	{"nothing", func(*town) {}, "out:1\n", "news:1\nc:direct\n", nil},
	{"a split takes a listener away", func(w *town) { w.change(w.off(w.b, w.out, journal.Listen)) },
		"", "news:1\nc:direct\n", nil},
	{"a split takes a channel away", func(w *town) { w.change(w.off(w.h, w.out, journal.Send)) },
		"", "news:1\nc:direct\n", []string{"not_connected"}},
	{"a split takes whom it writes to away", func(w *town) { w.change(topology.Disconnect{From: w.h, To: w.c}) },
		"out:1\n", "", []string{"not_connected"}},
	{"its delivery's channel goes", func(w *town) { w.change(topology.RemoveChannel{ID: w.in}) },
		"out:1\n", "news:1\nc:direct\n", nil},
	{"all its channels go", func(w *town) {
		for _, ch := range []journal.ChannelID{w.in, w.out, w.news} {
			w.change(topology.RemoveChannel{ID: ch})
		}
	}, "", "", []string{"not_connected", "not_connected", "not_connected"}},
	{"a merge", func(w *town) { w.connect(w.h, w.x, "bridge") }, "out:1\n", "news:1\nc:direct\n", nil},
	{"a merge into a larger graph", func(w *town) { w.enlarge(); w.connect(w.y, w.b, "bridge") },
		"out:1\n", "news:1\nc:direct\n", nil},
	{"a split and a merge", func(w *town) {
		w.change(w.off(w.b, w.out, journal.Listen))
		w.change(w.on(w.b, w.out, journal.Listen))
	}, "out:1\n", "news:1\nc:direct\n", nil},
	{"a merge and a split", func(w *town) {
		w.change(w.on(w.x, w.out, journal.Listen))
		w.change(w.off(w.x, w.out, journal.Listen))
	}, "out:1\n", "news:1\nc:direct\n", nil},
	{"many cuts", func(w *town) {
		w.enlarge()
		for range 2 {
			w.change(w.on(w.x, w.out, journal.Listen))
			w.change(w.off(w.c, w.news, journal.Listen))
			w.change(w.off(w.x, w.out, journal.Listen))
			w.change(w.on(w.c, w.news, journal.Listen))
		}
	}, "out:1\n", "news:1\nc:direct\n", nil},
	{"a split and a merge at once", func(w *town) {
		w.ops(topology.RemoveChannel{ID: w.in}, topology.Connect{From: w.h, To: w.x}, w.off(w.b, w.out, journal.Listen))
	}, "", "news:1\nc:direct\n", nil},
	{"its listeners change graphs with its channel", func(w *town) {
		w.ops(w.off(w.h, w.out, journal.Send), w.on(w.x, w.out, journal.Send))
	}, "", "news:1\nc:direct\n", []string{"not_connected"}},
	{"a listener goes", func(w *town) { w.change(topology.RemoveCreature{ID: w.b}) },
		"", "news:1\nc:direct\n", nil},
	{"the sender of its delivery goes", func(w *town) { w.change(topology.RemoveCreature{ID: w.a}) },
		"out:1\n", "news:1\nc:direct\n", nil},
	{"it is stopped", func(w *town) { w.change(topology.SetStopped{ID: w.h, Stopped: true}) },
		"out:1\n", "news:1\nc:direct\n", nil},
}
