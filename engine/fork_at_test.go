package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"pgregory.net/rapid"
)

// forker is a program that remembers how its sessions were at some moments.
type forker struct {
	*program
	past []remembered
}

// remembered is a session as it was at a cursor.
type remembered struct {
	session journal.SessionID
	cursor  journal.EventCursor
	rows    string
	events  []journal.EventID
}

// eventful listens and has effects of every kind: the message says which.
func (f *forker) eventful(t abi.Turn, kind abi.Kind) error {
	if err := f.listen(t, kind); err != nil || kind != abi.KindMessage {
		return err
	}
	payload, _ := t.Source(abi.SourcePayload)
	sum := 0
	for _, b := range payload {
		sum += int(b)
	}
	timer := fmt.Appendf(nil, "t%d", sum%3)
	switch sum % 7 {
	case 0:
		return codeErr(t, t.TimerSet(timer, time.Hour, time.Duration(sum%2)*time.Hour, payload))
	case 1:
		_, code := t.TimerCancel(timer)
		return codeErr(t, code)
	case 2:
		_, code := t.StateDelete([]byte("note"))
		return codeErr(t, code)
	case 3:
		return codeErr(t, t.StateSet([]byte("note"), payload))
	case 4:
		t.Request(fmt.Appendf(nil, "c%d", sum%4), payload, time.Hour, int64(sum)) // of a creature that may not exist
	case 5:
		return codeErr(t, t.Output(payload))
	}
	return nil
}

// produce sends as a producer that numbers its messages.
func (f *forker) produce() {
	if ch := f.channel(); ch != nil {
		f.sends++
		_, err := f.e.Send(f.ctx(), ch.id, engine.Outgoing{Payload: fmt.Appendf(nil, "%s %d", ch.name, f.sends), Producer: "p", Offset: uint64(f.sends)})
		f.must(err)
	}
}

// wire adds an output wire between two creatures, or removes one.
func (f *forker) wire() {
	from, to := f.creature(), f.creature()
	if from == nil || to == nil || from == to {
		return
	}
	wires, _, err := f.e.WiresOf(from.id)
	f.must(err)
	if len(wires) > 0 {
		_, err := f.e.RemoveWire(f.ctx(), wires[0].ID)
		f.must(err)
		return
	}
	_, _ = f.e.AddWire(f.ctx(), journal.OutputWire{From: from.id, To: to.id, WithContent: true}) // fails if they are in different graphs
}

// remember records the present state of every session.
func (f *forker) remember() {
	f.idle()
	for _, g := range f.live() {
		f.past = append(f.past, remembered{
			session: g.Session, cursor: f.here(), rows: f.rows(f.storage.(*sqlitestore.Directory), &g), events: f.history(f.storage, g.Session),
		})
	}
}

// live lists the graphs as their stores have them, with everything appended.
func (f *forker) live() []journal.SavedGraph {
	status, err := f.e.Status("")
	f.must(err)
	for _, g := range status {
		_, err := f.storage.History(f.ctx(), g.Session, journal.HistoryQuery{Limit: 1})
		f.must(err)
	}
	graphs, problems, err := f.storage.Saved(f.ctx())
	f.must(err)
	if len(problems) > 0 {
		f.Fatalf("%v", problems)
	}
	return graphs
}

// here is the cursor after all events.
func (f *forker) here() journal.EventCursor {
	replay, err := journal.NewReplay(f.ctx(), f.storage.(journal.Chronicle), journal.FromStart, nil)
	f.must(err)
	for more := true; more; f.must(err) {
		_, _, more, err = replay.Next(f.ctx())
	}
	return replay.Cursor()
}

// sessions reads a session directory.
type sessions interface {
	History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error)
}

func (f *forker) history(from sessions, session journal.SessionID) (ids []journal.EventID) {
	events, err := from.History(f.ctx(), session, journal.HistoryQuery{Limit: 1_000_000})
	f.must(err)
	for i := range events {
		ids = append(ids, events[i].ID)
	}
	return ids
}

// rows are the live rows of a graph as text, except for the name of the session and
// the cursors of outside readers.
func (f *forker) rows(from sessions, g *journal.SavedGraph) string {
	view, isView := from.(*sqlitestore.View)
	if !isView {
		var err error
		view, err = sqlitestore.OpenReadOnly(f.ctx(), f.dir)
		f.must(err)
		defer view.Close()
	}
	letters, err := view.DeadLetters(f.ctx(), g.Session, "", journal.EventID{}, 1_000_000)
	f.must(err)
	// Files list letters origin by origin, in the order in which the file first saw
	// each origin.
	slices.SortFunc(letters, func(a, b journal.DeadLetterRow) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	var b strings.Builder
	for _, c := range g.Creatures {
		state, err := view.State(f.ctx(), g.Session, c.ID)
		f.must(err)
		text, err := json.Marshal(state)
		f.must(err)
		fmt.Fprintf(&b, "%s has %s\n", c.ID, text)
	}
	kept := *g
	kept.Session, kept.Path = "", ""
	kept.Cursors = slices.DeleteFunc(slices.Clone(g.Cursors), func(c journal.CursorRow) bool { return strings.HasPrefix(string(c.Reader), "reader:") })
	for _, part := range []any{kept, kept.Wires, letters} {
		text, err := json.MarshalIndent(part, "", " ")
		f.must(err)
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// check forks every session at its remembered moments, and compares the fork with what
// was remembered.
func (f *forker) check() {
	for i, was := range f.past {
		dir := filepath.Join(f.dir, "..", fmt.Sprintf("fork-%d", i))
		fork, last, err := f.e.ForkAt(f.ctx(), string(was.session), was.cursor, dir)
		f.must(err)
		if want := was.events[len(was.events)-1]; last != want && !slices.Contains(was.events, last) {
			f.Fatalf("the fork ends with %s, but the session ended with %s", last, want)
		}
		f.compare(dir, fork, &was)
		f.comparePast(dir, fork, &was)
		f.must(os.RemoveAll(dir))
	}
}

func (f *forker) compare(dir string, fork journal.SessionID, was *remembered) {
	v, err := sqlitestore.OpenReadOnly(f.ctx(), dir)
	f.must(err)
	defer v.Close()
	g, err := v.Saved(f.ctx(), fork)
	f.must(err)
	if got := f.rows(v, &g); got != was.rows {
		f.Fatalf("the fork of session %s differs from that session at the time:\n%s", was.session, firstDifference(was.rows, got))
	}
	if got := f.history(v, fork); !slices.Equal(got, was.events) {
		f.Fatalf("session %s had the events\n%v\nbut its fork has\n%v", was.session, was.events, got)
	}
	report, err := v.Verify(f.ctx(), fork)
	f.must(err)
	if len(report.Missing)+len(report.Duplicate)+len(report.OutOfOrder)+len(report.Damage) > 0 {
		f.Fatalf("the fork is not sound: %+v", report)
	}
}

// comparePast compares a fork with the graph that the directory returns for that moment.
func (f *forker) comparePast(dir string, fork journal.SessionID, was *remembered) {
	v, err := sqlitestore.OpenReadOnly(f.ctx(), dir)
	f.must(err)
	defer v.Close()
	forked, err := v.Saved(f.ctx(), fork)
	f.must(err)
	graphs, problems, err := journal.GraphsAt(f.ctx(), f.storage.(*sqlitestore.Directory), was.cursor, func(i *journal.SessionInfo) bool { return i.Session == was.session })
	f.must(errors.Join(append(problems, err)...))
	if len(forked.Creatures)+len(forked.Channels) == 0 && len(graphs) == 0 {
		return
	}
	if len(graphs) != 1 {
		f.Fatalf("at the cursor there are %d graphs of session %s, want 1", len(graphs), was.session)
	}
	text := func(g *journal.SavedGraph) string {
		b, err := json.MarshalIndent([]any{g.Graph, g.Creatures, g.Channels, g.Edges, g.Wires}, "", " ")
		f.must(err)
		return string(b)
	}
	if want, got := text(&forked), text(&graphs[0]); want != got {
		f.Fatalf("the graph of session %s at the cursor differs from that of its fork:\n%s", was.session, firstDifference(want, got))
	}
}

// TestForkAtAnyTime forks the sessions of random programs at random moments, across
// merges, splits and restarts. Each fork must have the rows, the state and the dead
// letters of that moment, and the history up to it.
func TestForkAtAnyTime(t *testing.T) {
	usually(t, 12) // each run opens files
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "session")
		if err != nil {
			rt.Fatal(err)
		}
		f := &forker{program: newProgram(rt, filepath.Join(dir, "S"))}
		f.host.on("listener", f.eventful)
		defer f.shut()
		f.add()
		f.addChannel()
		steps := []func(){
			f.add, f.addChannel, f.listenOn, f.listenOff, f.remove, f.removeChannel, f.stopOrStart, f.restart, f.toggle,
			f.send, f.send, f.sendTo, f.idle, f.reopen, f.listenOn, f.produce, f.wire, f.remember, f.remember, f.settle,
		}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			rapid.SampledFrom(steps).Draw(rt, "step")()
		}
		f.remember()
		f.check()
	})
}

// settle copies every history into one file, so that files of ended sessions are
// removed.
func (f *forker) settle() { f.must(f.storage.(*sqlitestore.Directory).Settle(f.ctx())) }

// firstDifference is where two texts first differ, with some lines around.
func firstDifference(a, b string) string {
	was, is := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < min(len(was), len(is)) && was[i] == is[i] {
		i++
	}
	around := func(lines []string) string { return strings.Join(lines[max(0, i-8):min(len(lines), i+8)], "\n") }
	return around(was) + "\nis\n" + around(is)
}
