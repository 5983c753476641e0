package sqlitestore

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// editorCheck checks what a life of editors has left, without changing it.
type editorCheck struct {
	*editorReports
	v       *View
	live    []journal.SavedGraph
	session map[journal.ChannelID]journal.SessionID // that has a channel
	home    map[journal.CreatureID]journal.SessionID
}

func (b *editorReports) check() {
	b.t.Helper()
	v, err := OpenReadOnly(b.t.Context(), b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	c := &editorCheck{editorReports: b, v: v, session: map[journal.ChannelID]journal.SessionID{}, home: map[journal.CreatureID]journal.SessionID{}}
	c.load()
	for _, side := range sides {
		if m := b.teams[side]; len(m.members) > 0 {
			if n := len(c.logged[side]); len(c.answers(m)) == n {
				c.decide(context.Background(), side)
			}
		}
	}
	b.compare("the store", linesOfSaved(c.live))
	if len(b.graphs) == 3 {
		b.compare("the engine, in the end,", b.graphs[2])
	}
	for _, m := range b.teams {
		for name, h := range m.hands {
			c.heard(m, name, h)
		}
	}
}

// load reads the live sessions and verifies them.
func (c *editorCheck) load() {
	c.t.Helper()
	infos, err := c.v.Catalogue(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.cuts = map[journal.CutKind]int{}
	for _, info := range infos {
		if c.cuts[info.MadeBy]++; !info.Live {
			continue
		}
		g, err := c.v.Saved(c.t.Context(), info.Session)
		if err != nil {
			c.t.Fatal(err)
		}
		report, err := c.v.Verify(c.t.Context(), info.Session)
		if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); n > 0 || err != nil {
			c.t.Errorf("Verify: %+v, %v", report, err)
		}
		c.live = append(c.live, g)
		c.learn(g)
	}
	c.teams["left"].gate, c.teams["right"].gate = c.teams["right"].places["right-gate"], c.teams["left"].places["left-gate"]
}

// learn notes which ids the deployments have.
func (c *editorCheck) learn(g journal.SavedGraph) {
	for _, row := range g.Creatures {
		c.home[row.ID] = g.Session
		if row.Address != "" {
			c.teams[row.Deployment].members[row.Name] = row.ID
		}
	}
	for _, row := range g.Channels {
		c.session[row.ID] = g.Session
		if row.Address != "" {
			c.teams[row.Deployment].places[row.Name] = row.ID
		}
	}
}

// messages returns all messages of a channel, in the order of the log.
func (c *editorCheck) messages(ch journal.ChannelID) []journal.Event {
	c.t.Helper()
	events, err := c.v.History(c.t.Context(), c.session[ch], journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventChannelMessage}, Channel: ch, Limit: 1 << 30})
	if err != nil {
		c.t.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			c.t.Fatalf("message %d of %s comes as number %d", e.Seq, ch, i+1)
		}
	}
	return events
}

// answers checks that a team's editor has answered its orders one after the other, each once,
// and that no earlier answer is missing. It returns the new answers.
func (c *editorCheck) answers(m *team) []journal.Event {
	c.t.Helper()
	orders, answers := c.messages(m.places[m.side+"-orders"]), c.messages(m.places[m.side+"-answers"])
	known := c.logged[m.side]
	if len(answers) < len(known) || len(orders) < len(answers) {
		c.t.Fatalf("%s has %d orders and %d answers, and there were %d answers before", m.side, len(orders), len(answers), len(known))
	}
	if last := uint64(len(orders)); last > 0 && string(orders[last-1].Payload) != string(orderOf(c.seed, m.side, last, m.gate)) {
		c.t.Errorf("order %d of %s is %s", last, m.side, orders[last-1].Payload)
	}
	there := map[string]string{}
	for i, a := range answers {
		there[a.ID.String()] = string(a.Payload)
		switch {
		case a.Cause != orders[i].ID:
			c.t.Fatalf("answer %d of %s has the cause %s, want %s", i+1, m.side, a.Cause, orders[i].ID)
		case i < len(known) && a.ID != known[i]:
			c.t.Fatalf("answer %d of %s is %s, but was %s", i+1, m.side, a.ID, known[i])
		case i < len(known):
			continue
		}
		c.logged[m.side] = append(c.logged[m.side], a.ID)
		if err := m.answer(orders[i].Payload, a.Payload); err != nil {
			c.t.Fatal(err)
		}
	}
	c.passedOn(m, answers)
	for id, payload := range c.printed[m.side] {
		if there[id] != payload {
			c.t.Errorf("%s was printed as %s, but is %q in the log", id, payload, there[id])
		}
	}
	return answers
}

// decide finds out whether the deployment of a side was applied in a life of which nothing else
// is known on that side. The log shows it only if there is something after it.
func (c *editorCheck) decide(ctx context.Context, side string) {
	m := c.before[side]
	if m == nil {
		return
	}
	got, whole := linesOfSaved(c.live), c.before[side].clone()
	for _, line := range m.lines() {
		if _, there := slices.BinarySearch(got, line); !there {
			whole.applied()
			break
		}
	}
	whole.gate = c.teams[side].gate
	c.teams[side] = whole
}

// passedOn checks that the relay has passed on the answers in their order, each once.
func (c *editorCheck) passedOn(m *team, answers []journal.Event) {
	c.t.Helper()
	for i, e := range c.messages(m.places[m.side+"-heard"]) {
		if i >= len(answers) || e.Cause != answers[i].ID || string(e.Payload) != string(answers[i].Payload) {
			c.t.Fatalf("what the relay of %s passes on as number %d is %s", m.side, i+1, e.Payload)
		}
	}
}

// heard checks that a hand has counted every answer since the one that spawned it, once. In the
// end, a hand that runs has counted all of them.
func (c *editorCheck) heard(m *team, name string, h *hand) {
	c.t.Helper()
	state, err := c.v.State(c.t.Context(), c.home[h.id], h.id)
	if err != nil {
		c.t.Error(err)
		return
	}
	n := h.since
	for ; string(state[fmt.Sprint("count/", n)]) == "1"; n++ {
		delete(state, fmt.Sprint("count/", n))
	}
	maps.DeleteFunc(state, func(key string, _ []byte) bool { return !strings.HasPrefix(key, "count/") })
	if len(state) > 0 || n > m.answered+1 || c.done && !h.stopped && n != m.answered+1 {
		c.t.Errorf("%s has counted the answers from %d to %d of %d, and %q", name, h.since, n-1, m.answered, state)
	}
}

// checkEnd checks that nothing is left to be done: stores/ has only the files of sessions, and
// every message that was not handled was for a removed creature.
func (b *editorReports) checkEnd() {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, files.Stores))
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := OpenReadOnly(b.t.Context(), b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	infos, err := v.Catalogue(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var known, files []string
	for _, info := range infos {
		if info.Path != "" {
			known = append(known, filepath.Base(info.Path))
		}
		if info.Live != info.Complete && info.Path != "" && !b.isBlank(v, info) {
			b.t.Errorf("the directory has settled, but there is %+v", info)
		}
		if info.Live {
			b.checkLetters(v, info.Session)
		}
	}
	for _, e := range entries {
		files = append(files, e.Name())
	}
	if slices.Sort(known); !slices.Equal(files, known) {
		b.t.Errorf("the files are %q, want %q", files, known)
	}
}

// isBlank reports whether a session that has ended was never written to, because its process
// was killed right after it was made. No creature has received anything from it, so it is kept
// like other sessions whose graph has ended.
func (b *editorReports) isBlank(v *View, info journal.SessionInfo) bool {
	b.t.Helper()
	if info.Live || info.MadeBy != "" {
		return false
	}
	events, err := v.History(b.t.Context(), info.Session, journal.HistoryQuery{Limit: 1})
	if err != nil {
		b.t.Error(err)
	}
	return len(events) == 0
}

func (b *editorReports) checkLetters(v *View, session journal.SessionID) {
	b.t.Helper()
	letters, err := v.DeadLetters(b.t.Context(), session, "", journal.EventID{}, 1<<30)
	if err != nil {
		b.t.Error(err)
	}
	for _, l := range letters {
		if l.Reason != "creature_removed" {
			b.t.Errorf("a dead letter: %+v", l)
		}
	}
}
