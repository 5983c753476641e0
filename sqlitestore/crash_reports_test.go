package sqlitestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// reports is what the lives of a program have reported, and what must follow from it.
type reports struct {
	graphs   map[journal.GraphID]*descent
	origins  map[journal.Origin]*origin
	channels map[journal.ChannelID]*channel
	pending  *progress // the change that was announced when the life ended
}

// descent is what is known about one graph, which has one session.
type descent struct {
	parents           []journal.GraphID
	mergedAt, splitAt int64
	ended, retired    bool
}

type origin struct {
	graph        journal.GraphID
	acknowledged uint64
	counted      bool // its life has ended, and it has exactly the events 1 to highest
	highest      uint64
}

type channel struct {
	graph        journal.GraphID
	acknowledged uint64
}

func newReports() *reports {
	return &reports{graphs: map[journal.GraphID]*descent{}, origins: map[journal.Origin]*origin{}, channels: map[journal.ChannelID]*channel{}}
}

// take notes what a life reports.
func (b *reports) take(line progress) error {
	switch line.Word {
	case "creating", "cutting", "retiring":
		b.pending = &line
	case "created", "cut", "retired":
		b.happened(b.pending)
	case "opening":
		o, err := journal.ParseOrigin(line.Origin)
		if b.origins[o] != nil {
			err = fmt.Errorf("the origin %s is used again", o)
		}
		b.origins[o] = &origin{graph: line.Graph}
		return err
	case "ok":
		o, err := journal.ParseOrigin(line.Origin)
		if err != nil {
			return err
		}
		b.origins[o].acknowledged = max(b.origins[o].acknowledged, line.Seq)
		for c, n := range line.Heads {
			if b.channels[c] == nil {
				b.channels[c] = &channel{graph: line.Graph}
			}
			b.channels[c].acknowledged = max(b.channels[c].acknowledged, n)
		}
	case "error":
		return fmt.Errorf("the program failed: %s", line.Text)
	}
	return nil
}

// happened notes that the announced change has been made.
func (b *reports) happened(line *progress) {
	b.pending = nil
	if line.Word == "retiring" {
		b.graphs[line.Graph].retired = true
		return
	}
	uses := map[journal.GraphID]int{}
	for _, c := range line.Children {
		for _, g := range c.Parents {
			uses[g]++
		}
	}
	for _, g := range line.Ended {
		b.graphs[g].ended = true
	}
	for _, c := range line.Children {
		a := &descent{parents: c.Parents}
		if len(c.Parents) > 1 {
			a.mergedAt = line.At
		}
		if slices.ContainsFunc(c.Parents, func(g journal.GraphID) bool { return uses[g] > 1 }) {
			a.splitAt = line.At
		}
		if line.Kind == "merge" {
			a.splitAt = 0
		}
		if line.Kind == "split" {
			a.mergedAt = 0
		}
		b.graphs[c.Graph] = a
		for _, name := range c.Channels {
			if b.channels[name] == nil { // announced, and not acknowledged before
				b.channels[name] = &channel{}
			}
			b.channels[name].graph = c.Graph
		}
	}
}

// line returns the ancestors of a graph, and the graph itself.
func (b *reports) line(g journal.GraphID) map[journal.GraphID]bool {
	out := map[journal.GraphID]bool{g: true}
	for queue := []journal.GraphID{g}; len(queue) > 0; queue = queue[1:] {
		for _, p := range b.graphs[queue[0]].parents {
			if !out[p] {
				out[p] = true
				queue = append(queue, p)
			}
		}
	}
	return out
}

// checker checks what a life has left, in a directory that has been opened again.
type checker struct {
	*reports
	t     *testing.T
	d     *Directory
	infos map[journal.GraphID]journal.SessionInfo
	graph map[journal.SessionID]journal.GraphID
	heard map[journal.GraphID]map[journal.ChannelID]*tally // the sums of the messages of each session
}

// check opens the directory, as the next life does, and checks everything. With settle, it also
// waits for the work in the background.
func (b *reports) check(t *testing.T, dir string, random *rand.Rand, settle bool) {
	t.Helper()
	defer losevfs.Mount(dir, 0).Unmount()
	d, err := Open(t.Context(), dir, WithoutSyncs)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := &checker{reports: b, t: t, d: d, heard: map[journal.GraphID]map[journal.ChannelID]*tally{}}
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("Saved: problems %v, %v", problems, err)
	}
	c.list()
	c.decide(t.Context())
	c.lineages()
	ended := slices.Sorted(maps.Keys(b.graphs))
	random.Shuffle(len(ended), func(i, j int) { ended[i], ended[j] = ended[j], ended[i] })
	looks := 2 // looks at sessions that a cut has ended: there are many, and most are read as a part of others
	for _, g := range ended {
		if b.graphs[g].ended {
			if looks--; looks < 0 {
				continue
			}
		}
		c.session(g)
	}
	for _, o := range b.origins { // an origin that is missing now will never appear
		o.counted = true
	}
	for _, g := range graphs {
		c.rows(g)
	}
	c.files(false)
	if settle {
		c.settled(graphs)
	}
}

func (c *checker) list() {
	entries, err := c.d.catalog.Entries(context.Background()) // Sessions opens all files, which takes long
	if err != nil {
		c.t.Fatal(err)
	}
	c.infos, c.graph = map[journal.GraphID]journal.SessionInfo{}, map[journal.SessionID]journal.GraphID{}
	for _, e := range entries {
		info := e.SessionInfo
		if _, twice := c.infos[info.Graph]; twice {
			c.t.Errorf("the graph %s has two sessions", info.Graph)
		}
		c.infos[info.Graph], c.graph[info.Session] = info, info.Graph
	}
}

// decide finds out whether the announced change has been made: all of it, or nothing.
func (c *checker) decide(ctx context.Context) {
	p := c.pending
	c.pending = nil
	if p == nil {
		return
	}
	var yes, no int
	count := func(done bool) {
		if done {
			yes++
		} else {
			no++
		}
	}
	for _, child := range p.Children {
		_, there := c.infos[child.Graph]
		count(there)
	}
	for _, g := range p.Ended {
		count(!c.infos[g].Live)
	}
	if p.Word == "retiring" {
		count(!c.infos[p.Graph].Live)
	}
	switch {
	case yes > 0 && no > 0:
		c.t.Errorf("a change has been made in part: %+v", *p)
	case yes > 0:
		c.happened(p)
	}
}

// lineages checks which sessions exist, which are live, and which parents they have.
func (c *checker) lineages() {
	for g := range c.infos {
		if c.graphs[g] == nil {
			c.t.Fatalf("the graph %s exists, but no cut has made it", g)
		}
	}
	for g, a := range c.graphs {
		info, there := c.infos[g]
		if !there {
			c.t.Fatalf("the graph %s has no session", g)
		}
		var parents []journal.GraphID
		for _, p := range info.Parents {
			parents = append(parents, c.graph[p])
		}
		if info.Live == (a.ended || a.retired) || !slices.Equal(parents, a.parents) || info.MergedAt != a.mergedAt || info.SplitAt != a.splitAt {
			c.t.Errorf("%s comes from %v: %+v; want %+v", g, parents, info, *a)
		}
	}
}

// session checks that a session has every event of its ancestors and its own events once, and
// no others, and that every channel is in order.
func (c *checker) session(g journal.GraphID) {
	session := c.infos[g].Session
	report, err := c.d.Verify(c.t.Context(), session)
	if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); n > 0 || err != nil {
		c.t.Errorf("Verify: %+v, %v", report, err)
	}
	events, err := c.d.History(c.t.Context(), session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		c.t.Fatalf("the history of %s: %v", session, err)
	}
	if ancestors, err := c.d.catalog.Line(context.Background(), session); err != nil || len(ancestors) != len(c.line(g)) {
		c.t.Errorf("%s has %d ancestors, want %d; %v", g, len(ancestors), len(c.line(g)), err)
	}
	line, highest, heard := c.line(g), map[journal.Origin]uint64{}, map[journal.ChannelID]*tally{}
	c.heard[g] = heard
	for _, e := range events {
		if o := c.origins[e.ID.Origin]; o == nil || o.graph != e.Graph || !line[e.Graph] {
			c.t.Fatalf("%s has the event %s of %s, which is not its ancestor", g, e.ID, e.Graph)
		}
		if e.ID.Seq != highest[e.ID.Origin]+1 || !bytes.Equal(e.Payload, payloadOf(e.ID)) {
			c.t.Fatalf("%s: the event %s follows number %d, or has the wrong content of %d bytes", g, e.ID, highest[e.ID.Origin], len(e.Payload))
		}
		highest[e.ID.Origin] = e.ID.Seq
		if e.Channel == "" {
			continue
		}
		if heard[e.Channel] == nil {
			heard[e.Channel] = &tally{}
		}
		if heard[e.Channel].hear(e.Payload); e.Seq != heard[e.Channel].n {
			c.t.Fatalf("%s: message %d of %s comes as number %d", g, e.Seq, e.Channel, heard[e.Channel].n)
		}
	}
	c.highest(g, line, highest)
}

// highest checks how many events of each origin a session has: as many as every other session
// that descends from the same graph, and no fewer than were acknowledged.
func (c *checker) highest(g journal.GraphID, line map[journal.GraphID]bool, highest map[journal.Origin]uint64) {
	for id, o := range c.origins {
		if !line[o.graph] {
			continue
		}
		n := highest[id]
		if !o.counted {
			o.counted, o.highest = true, n
		}
		if n != o.highest || n < o.acknowledged {
			c.t.Errorf("%s has %d events of %s; others have %d, and %d were acknowledged", g, n, id, o.highest, o.acknowledged)
		}
	}
}

// rows compares the live rows of a graph with the messages of its channels.
func (c *checker) rows(g journal.SavedGraph) {
	owned := 0
	for _, ch := range c.channels {
		if ch.graph == g.Graph {
			owned++
		}
	}
	for _, row := range g.Channels {
		if c.channels[row.ID] == nil { // created right before the life ended
			c.channels[row.ID] = &channel{graph: g.Graph}
			owned++
		}
		if at := c.channels[row.ID].graph; at != g.Graph {
			c.t.Errorf("%s is in %s, want %s", row.ID, g.Graph, at)
		}
	}
	if len(g.Channels) < owned && c.missing(g) {
		c.t.Errorf("%s has %d channels, want %d", g.Graph, len(g.Channels), owned)
	}
	err := c.d.catalog.withRows(c.t.Context(), "read", g.Session, func(_ catalog.Entry, f *family) error {
		for _, row := range g.Channels {
			if err := c.channelRows(f, g, row.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
}

// missing reports whether a channel that was acknowledged does not exist.
func (c *checker) missing(g journal.SavedGraph) bool {
	for name, ch := range c.channels {
		if ch.graph != g.Graph || slices.ContainsFunc(g.Channels, func(r journal.ChannelRow) bool { return r.ID == name }) {
			continue
		}
		if ch.acknowledged > 0 {
			return true
		}
		delete(c.channels, name) // announced, but never written
	}
	return false
}

// channelRows checks the rows of one channel and its reader.
func (c *checker) channelRows(f *family, g journal.SavedGraph, name journal.ChannelID) error {
	var want, got tally
	if heard := c.heard[g.Graph][name]; heard != nil {
		want = *heard
	}
	if n := c.channels[name].acknowledged; want.n < n {
		c.t.Errorf("%s has %d messages, but %d were acknowledged", name, want.n, n)
	}
	state, err := f.own.state(c.t.Context(), readerOf(name))
	if err != nil {
		return err
	}
	if len(state) > 0 {
		got = tally{binary.LittleEndian.Uint64(state["n"]), binary.LittleEndian.Uint64(state["sum"])}
	}
	if got != want {
		c.t.Errorf("the reader of %s has heard %+v, want %+v", name, got, want)
	}
	if all := slices.Repeat([]uint64{want.n}, 5); want.n > 0 && !slices.Equal(numbersOf(g, name), all) {
		c.t.Errorf("the rows of %s are at %v, want %v", name, numbersOf(g, name), all)
	}
	letters, err := f.own.letters(c.t.Context(), readerOf(name), journal.EventID{}, 1<<30)
	if uint64(len(letters)) != want.n/letterEvery {
		c.t.Errorf("%s has %d dead letters for %d messages", name, len(letters), want.n)
	}
	return err
}

// numbersOf returns the numbers in the rows of a channel: head, both cursors, producer, timer.
func numbersOf(g journal.SavedGraph, name journal.ChannelID) (out []uint64) {
	for _, r := range g.Heads {
		if r.Channel == name {
			out = append(out, r.Seq)
		}
	}
	for _, r := range g.Cursors {
		if r.Channel == name {
			out = append(out, r.Seq)
		}
	}
	for _, r := range g.Producers {
		if r.Channel == name {
			out = append(out, r.Offset)
		}
	}
	for _, r := range g.Timers {
		if r.Creature == readerOf(name) {
			out = append(out, uint64(r.Due))
		}
	}
	return out
}

// settled opens all stores and waits for the background. Then each store is complete, and
// nothing is left to be done or removed.
func (c *checker) settled(graphs []journal.SavedGraph) {
	for _, g := range graphs {
		s, err := c.d.Open(c.t.Context(), g.Session)
		if err != nil {
			c.t.Fatal(err)
		}
		c.origins[s.Origin()] = &origin{graph: g.Graph, counted: true}
	}
	if err := c.d.Settle(c.t.Context()); err != nil {
		c.t.Fatalf("Settle: %v", err)
	}
	c.list()
	for _, info := range c.infos {
		if !info.Complete && !c.graphs[info.Graph].ended {
			c.t.Errorf("%s is not complete", info.Session)
		}
		if info.Path != "" && c.graphs[info.Graph].ended {
			c.t.Errorf("%s still has its file", info.Session)
		}
	}
	for _, g := range graphs {
		c.session(g.Graph)
	}
	c.files(true)
}

// files checks that stores/ has only the files that the catalogue knows and those that were
// made in advance. If done is set, the catalogue must not list anything to be done either.
func (c *checker) files(done bool) {
	dir := filepath.Join(c.d.dir, files.Stores)
	found, err := os.ReadDir(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	known := c.known(done)
	for _, f := range found {
		name := f.Name()
		if strings.HasSuffix(name, ".v1") {
			continue // the original of a file of an older version is kept
		}
		for _, suffix := range append([]string{files.PartialSuffix}, sqlite.Suffixes[1:]...) {
			name = strings.TrimSuffix(name, suffix)
		}
		if known[name] || storefile.IsUnused(context.Background(), filepath.Join(dir, name)) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, f.Name())); err == nil { // it was not removed meanwhile
			c.t.Errorf("%s is left over", f.Name())
		}
	}
}

// known returns the files that the catalogue knows. The catalogue changes meanwhile, so they
// are read in this order.
func (c *checker) known(done bool) map[string]bool {
	begun, err := c.d.catalog.Hydrations(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	c.list()
	rest, err := c.d.catalog.Leftovers(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	if n := len(begun) + len(rest); n > 0 && done {
		c.t.Errorf("still to be done: %+v; still to be removed: %v", begun, rest)
	}
	out := map[string]bool{}
	for _, y := range begun {
		out[y.File] = true
	}
	for _, info := range c.infos {
		if info.Path != "" {
			out[filepath.Base(info.Path)] = true
		}
	}
	for _, file := range rest {
		out[file] = true
	}
	return out
}
