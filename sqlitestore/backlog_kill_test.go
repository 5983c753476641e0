package sqlitestore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// backlogPoints are where a life with backlogs is ended, besides random moments: at the steps
// of copying and pruning history, of cuts, and of the start.
var backlogPoints = []failpoint.Point{
	failpoint.Opened, failpoint.Appending, failpoint.Filled, failpoint.Cutting, failpoint.Cut, failpoint.Frozen, failpoint.Noting, failpoint.Noted, failpoint.Copying, failpoint.Copied,
	failpoint.Stripping, failpoint.Stripped, failpoint.Uniting, failpoint.United, failpoint.Uniting, failpoint.United, failpoint.TailFollowed, failpoint.Standing, failpoint.Finishing,
	failpoint.Finished, failpoint.Completing, failpoint.Completed, failpoint.Moved, failpoint.Releasing, failpoint.Removed, failpoint.Swept,
}

const killsPerBacklog = 12 // of one directory

// TestKilledWithBacklogs kills a process whose listeners are behind, because they are stopped
// or separated from their channel. Meanwhile graphs are merged and split, so that sessions
// share ancestors. History is copied, and pruned by command and by bounds. Listeners are
// started during this. The next process continues by itself.
//
// After every life no backlog has a gap, no creature has missed a message or received one
// twice or out of order, every session is sound, and a fork at the newest event holds
// what is live. In the end every creature has received everything.
func TestKilledWithBacklogs(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	died, forked, refused, killed := map[string]int{}, 0, 0, 0
	for todo := backlogKills(t); todo > 0 && !t.Failed(); todo -= killsPerBacklog {
		b := &backlogReports{t: t, dir: t.TempDir(), forks: t.TempDir(), random: random}
		b.begin()
		for range min(todo, killsPerBacklog) {
			point := failpoint.Count
			if random.IntN(4) > 0 {
				point = backlogPoints[random.IntN(len(backlogPoints))]
			}
			killed++
			died[b.live(point)]++
		}
		b.finish()
		forked, refused = forked+b.forked, refused+b.refused
	}
	t.Logf("%d lives ended at %v; %d forks were made, and %d refused", killed, died, forked, refused)
	if forked == 0 {
		t.Error("nothing was forked")
	}
}

// backlogKills is how often TestKilledWithBacklogs kills: less often than TestKilled, because its
// checks take longer.
func backlogKills(t *testing.T) int { return (kills(t) + 3) / 4 }

// stretchOf is a range of messages by their numbers: after the first number, up to the last.
type stretchOf struct{ behind, upTo uint64 }

// backlogReports is what the lives of one directory have reported, and what follows from it.
type backlogReports struct {
	t          *testing.T
	dir, forks string
	random     *rand.Rand
	wants      map[string][wells][]stretchOf // of each hearer; the last may be open, up to 0
	pending    *edging                       // the change that was announced when the life ended
	acked      [wells]uint64
	heads      [wells]uint64 // after the last life

	forked, refused int
}

// begin makes the session.
func (b *backlogReports) begin() {
	b.t.Helper()
	b.wants = map[string][wells][]stretchOf{}
	for i := range wells {
		var own [wells][]stretchOf
		own[i] = []stretchOf{{}}
		b.wants[dwellerOf(i)], b.wants[sleeperOf(i)] = own, own
	}
	if !b.run(order{Point: failpoint.Count + 1}, lagging{Steps: 3}) {
		b.t.Fatal("the first life did not reach its end")
	}
	b.check(false)
}

// live lets a process run until it dies at the point, checks what it leaves, and returns where
// it ended.
func (b *backlogReports) live(point failpoint.Point) string {
	b.t.Helper()
	o := order{Point: point, Pass: 1 + b.random.Int32N(3), Lines: 60}
	switch point {
	case failpoint.Appending, failpoint.Uniting, failpoint.United, failpoint.Copying:
		o.Pass = 1 + b.random.Int32N(30)
	}
	l := lagging{Steps: 40, Finish: b.random.IntN(4) == 0}
	if b.random.IntN(2) == 0 {
		l.Retain = 20 + b.random.Int64N(300)
	}
	done := b.run(o, l)
	b.check(false)
	switch {
	case b.t.Failed():
		b.t.Fatalf("after a life that was to end at %s, pass %d, keeping %d events", pointName(point), o.Pass, l.Retain)
	case done:
		return "its own end"
	}
	return pointName(point)
}

// finish lets a process start all creatures, and wait until they have received everything.
func (b *backlogReports) finish() {
	b.t.Helper()
	if b.t.Failed() {
		return
	}
	if !b.run(order{Point: failpoint.Count + 1}, lagging{Finish: true}) {
		b.t.Fatal("the last life did not reach its end")
	}
	b.check(true)
	wantTidy(b.t, b.dir)
}

func (b *backlogReports) run(o order, l lagging) bool {
	b.t.Helper()
	o.Dir, l.Seed = b.dir, b.random.Uint64()
	a := &errand{Word: "lag", Lagging: &l}
	lines, done := a.sendOff(b.t, o, b.random)
	for i := range lines {
		b.listen(&lines[i])
	}
	return done
}

// listen notes what a life reports.
func (b *backlogReports) listen(line *progress) {
	b.t.Helper()
	var err error
	switch line.Word {
	case "ok":
		b.acked[line.At] = max(b.acked[line.At], line.Seq)
	case "resumed":
		var heads [wells]uint64
		err = json.Unmarshal([]byte(line.Text), &heads)
		for i, n := range heads {
			if n < b.acked[i] {
				b.t.Errorf("%s continues after message %d, but %d were acknowledged", wellName(i), n, b.acked[i])
			}
		}
	case "edging":
		b.pending = &edging{}
		err = json.Unmarshal([]byte(line.Text), b.pending)
	case "edged":
		b.happened()
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// happened notes that the edge has been turned on or off.
func (b *backlogReports) happened() {
	p, of := b.pending, b.wants[b.pending.Hearer]
	b.pending = nil
	list := slices.Clone(of[p.Well])
	last := len(list) - 1
	switch {
	case p.On && last >= 0 && list[last].upTo == p.Head:
		list[last].upTo = 0 // it continues where it had ended
	case p.On:
		list = append(list, stretchOf{behind: p.Head})
	case list[last].behind == p.Head:
		list = list[:last]
	default:
		list[last].upTo = p.Head
	}
	of[p.Well] = list
	b.wants[p.Hearer] = of
}

// wanted returns the runs of messages that a hearer must hear, as the hearer writes them. Open
// runs go up to the last message.
func (b *backlogReports) wanted(name string, well int) (out []stretchOf) {
	for _, s := range b.wants[name][well] {
		if s.upTo == 0 {
			s.upTo = b.heads[well]
		}
		if s.upTo > s.behind {
			out = append(out, s)
		}
	}
	return out
}

// check checks what a life has left, without changing it.
func (b *backlogReports) check(all bool) {
	b.t.Helper()
	v := mustView(b.t, b.dir)
	list, err := v.Catalogue(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var graphs []journal.SavedGraph
	b.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	looks := 2 // looks at sessions that have ended
	for _, info := range list {
		if looks--; info.Live || looks >= 0 {
			wantWhole(b.t, v, info.Session)
		}
		if info.Live {
			g, err := v.Saved(b.t.Context(), info.Session)
			if err != nil {
				b.t.Fatal(err)
			}
			graphs = append(graphs, g)
		}
	}
	listens := map[string]string{}
	for _, g := range graphs {
		maps.Copy(listens, listensOf(g))
		for _, c := range g.Channels {
			if well, is := wellOf(c); is {
				b.heads[well] = headOf(g, c.ID)
			}
		}
	}
	b.decide(listens)
	for i, g := range graphs {
		b.backlogs(v, g)
		b.heard(v, g, all)
		if i < 2 {
			b.fork(v, g)
		}
	}
}

func wellOf(c journal.ChannelRow) (well int, is bool) {
	_, err := fmt.Sscanf(c.Name, "well-%d", &well)
	return well, err == nil && c.Inbox == ""
}

func headOf(g journal.SavedGraph, c journal.ChannelID) uint64 {
	for _, h := range g.Heads {
		if h.Channel == c {
			return h.Seq
		}
	}
	return 0
}

// decide finds out whether the announced change has been made, and checks everything that was
// made before.
func (b *backlogReports) decide(listens map[string]string) {
	b.t.Helper()
	if p := b.pending; p != nil {
		if strings.Contains(listens[p.Hearer], wellName(p.Well)) == p.On {
			b.happened()
		}
		b.pending = nil
	}
	for i, n := range b.acked {
		if b.heads[i] < n {
			b.t.Errorf("%s has %d messages, but %d were acknowledged", wellName(i), b.heads[i], n)
		}
	}
	for _, name := range hearers() {
		var on []string
		for i, list := range b.wants[name] {
			if n := len(list); n > 0 && list[n-1].upTo == 0 {
				on = append(on, wellName(i))
			}
		}
		if want := fmt.Sprint(on); listens[name] != want {
			b.t.Errorf("%s listens on %s, want %s", name, listens[name], want)
		}
	}
}

// backlogs checks that no backlog has a gap.
func (b *backlogReports) backlogs(v *View, g journal.SavedGraph) {
	b.t.Helper()
	for _, c := range g.Cursors {
		events, err := v.Messages(b.t.Context(), g.Session, c.Channel, c.Seq, c.Until, 1<<30, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		next := c.Seq
		for i := range events {
			if next++; events[i].Seq != next {
				b.t.Fatalf("%s: message %d of %s is followed by %d for %s", g.Session, next-1, c.Channel, events[i].Seq, c.Reader)
			}
		}
		if end := cmp.Or(c.Until, headOf(g, c.Channel)); next != end {
			b.t.Errorf("%s: the backlog of %s in %s ends with %d, want %d", g.Session, c.Reader, c.Channel, next, end)
		}
	}
}

// heard checks what the hearers of a graph have heard.
func (b *backlogReports) heard(v *View, g journal.SavedGraph, all bool) {
	b.t.Helper()
	for _, c := range g.Creatures {
		state, err := v.State(b.t.Context(), g.Session, c.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		for well := range wells {
			got, want := string(state[wellName(well)]), b.wanted(c.Name, well)
			if !isPrefix(got, want, all) {
				b.t.Errorf("%s has heard %s of well %d, want %v", c.Name, got, well, want)
			}
		}
	}
	letters, err := v.DeadLetters(b.t.Context(), g.Session, "", journal.EventID{}, 10)
	if err != nil || len(letters) > 0 {
		b.t.Errorf("dead letters %v, %v", letters, err)
	}
}

// isPrefix reports whether runs of numbers are the beginning of others, or all of them.
func isPrefix(runs string, want []stretchOf, all bool) bool {
	var got []stretchOf
	for run := range strings.SplitSeq(runs, ",") {
		var s stretchOf
		if _, err := fmt.Sscanf(run, "%d-%d", &s.behind, &s.upTo); err == nil {
			s.behind--
			got = append(got, s)
		}
	}
	if all || len(got) == 0 || len(got) > len(want) {
		return slices.Equal(got, want) || !all && len(got) == 0
	}
	last := len(got) - 1
	return slices.Equal(got[:last], want[:last]) && got[last].behind == want[last].behind && got[last].upTo <= want[last].upTo
}

// fork compares a fork at the newest event with the live rows. The fork may be refused if
// history was pruned in the meantime.
func (b *backlogReports) fork(v *View, g journal.SavedGraph) {
	b.t.Helper()
	ctx := b.t.Context()
	log := history(b.t, v, g.Session)
	newest := log[len(log)-1]
	mark := journal.Mark{Event: newest.ID, Since: newest.Time}
	dir := filepath.Join(b.forks, "fork")
	fork, _, err := v.ForkAt(ctx, g.Session, mark, dir)
	unborn := newest.Time <= entriesOf(b.t, b.dir)[g.Session].Created // the session has written nothing yet
	if code := abi.CodeOf(err); code == abi.Unsupported || code == abi.InvalidArgument && unborn {
		b.refused++
		return
	}
	if err != nil {
		b.t.Errorf("ForkAt: %v", err)
		return
	}
	b.forked++
	w, err := OpenReadOnly(ctx, dir)
	if err != nil {
		b.t.Fatal(err)
	}
	wantWhole(b.t, w, fork)
	for _, c := range g.Creatures {
		want, err := v.State(ctx, g.Session, c.ID)
		got, forkErr := w.State(ctx, fork, c.ID)
		if err = errors.Join(err, forkErr); err != nil || fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
			b.t.Errorf("session %s: the fork has the state %s of %s, want %s; %v", g.Session, got, c.Name, want, err)
		}
	}
	if err := errors.Join(w.Close(), os.RemoveAll(dir)); err != nil {
		b.t.Error(err)
	}
}
