package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/topology"
	"pgregory.net/rapid"
)

// witness keeps the documents that creatures have read, by creature, in the order of the reads.
type witness struct {
	mu    sync.Mutex
	reads map[journal.CreatureID][]reading
}

// reading is what one turn has seen.
type reading struct {
	kind     abi.Kind
	revision uint64
	document *outlook.Awareness
	markdown string
}

// on makes the host run two kinds of creatures: a looker reads its document in every
// turn, and a watcher also wants notifications of changes.
func (w *witness) on(h *fakeHost) {
	w.reads = map[journal.CreatureID][]reading{}
	h.on("looker", w.look)
	h.on("watcher", w.look)
	h.exports["watcher"] = []string{"creature_handle", abi.ExportGraphChanged}
}

func (w *witness) look(t abi.Turn, kind abi.Kind) error {
	revision, _ := t.Source(abi.SourceAwarenessRevision)
	n, err := strconv.ParseUint(string(revision), 10, 64)
	if err != nil {
		return err
	}
	r := reading{kind: kind, revision: n}
	doc, code := t.Source(abi.SourceAwarenessJSON)
	if code != abi.OK {
		return codeErr(t, code)
	}
	if err := json.Unmarshal(doc, &r.document); err != nil {
		return err
	}
	text, _ := t.Source(abi.SourceAwarenessMarkdown)
	r.markdown = string(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	id := r.document.Self.ID
	w.reads[id] = append(w.reads[id], r)
	return nil
}

func (w *witness) of(c journal.CreatureID) []reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reads[c])
}

// last is what a creature read last.
func (w *witness) last(c journal.CreatureID) reading {
	if all := w.of(c); len(all) > 0 {
		return all[len(all)-1]
	}
	return reading{}
}

// TestTheDocumentIsTheGraph applies random operations. Whenever a creature looks, its
// document must match the status of the graph. Its revision must be higher if, and
// only if, the document has changed.
func TestTheDocumentIsTheGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &awareProgram{program: newProgram(rt, "")}
		p.watch()
		defer p.shut()
		p.runAware()
	})
}

// TestTheRevisionOutlivesTheEngine does the same with stores, and with engines that
// resume the session one after the other.
func TestTheRevisionOutlivesTheEngine(t *testing.T) {
	usually(t, 25) // each run opens files
	rapid.Check(t, func(rt *rapid.T) {
		p := &awareProgram{program: newProgram(rt, t.TempDir())}
		p.watch()
		defer p.shut()
		p.runAware()
	})
}

// awareProgram is a random sequence of operations on graphs whose creatures read their
// documents.
type awareProgram struct {
	*program
	witness witness
	members []journal.CreatureID
	known   map[journal.CreatureID]reading // what each creature saw at its last look
	// several reports that there was more than one step since the last look. Then a watcher may
	// have seen a step that the next one undid.
	several bool
}

func (p *awareProgram) watch() {
	p.known = map[journal.CreatureID]reading{}
	p.witness.on(p.host)
}

func (p *awareProgram) runAware() {
	for range 3 {
		p.spawn()
	}
	steps := map[string]func(){
		"spawn": p.spawn, "remove": p.leave, "join": p.join, "part": p.part, "edge": p.edge,
		"rank": p.rank, "stop": p.stop, "declare": p.declare,
	}
	if p.dir != "" {
		steps["reopen"] = p.reopenAware
	}
	names := []string{}
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(1, 25).Draw(p.T, "steps") {
		n := rapid.IntRange(1, 3).Draw(p.T, "at once")
		p.several = n > 1
		for range n {
			steps[rapid.SampledFrom(names).Draw(p.T, "step")]()
		}
		p.verify()
	}
}

func (p *awareProgram) some() journal.CreatureID {
	return rapid.SampledFrom(p.members).Draw(p.T, "creature")
}

func (p *awareProgram) spawn() {
	s := spec(rapid.SampledFrom([]string{"ann", "bob", "`x` *[y](z)*"}).Draw(p.T, "name"), rapid.SampledFrom([]string{"looker", "watcher"}).Draw(p.T, "module"))
	s.Privileged = rapid.Bool().Draw(p.T, "privileged")
	if len(p.members) > 0 && rapid.Bool().Draw(p.T, "below a parent") {
		s.Parent = p.some()
	}
	added, err := p.e.AddCreature(p.ctx(), s)
	p.must(err)
	p.members = append(p.members, added.Creature)
}

func (p *awareProgram) leave() {
	if len(p.members) < 2 {
		return
	}
	c := p.some()
	p.change(topology.RemoveCreature{ID: c})
	p.members = slices.DeleteFunc(p.members, func(x journal.CreatureID) bool { return x == c })
}

func (p *awareProgram) join() {
	p.change(topology.Connect{From: p.some(), To: p.some(), Name: rapid.SampledFrom([]string{"", "one", "two"}).Draw(p.T, "channel")})
}

// attempt applies an operation that may be refused.
func (p *awareProgram) attempt(op topology.Op) { _, _ = p.e.Change(p.ctx(), op) }

func (p *awareProgram) part() { p.attempt(topology.Disconnect{From: p.some(), To: p.some()}) }

func (p *awareProgram) declare() {
	graphs, err := p.e.Status("")
	p.must(err)
	g := rapid.SampledFrom(graphs).Draw(p.T, "graph")
	_, _ = p.e.AddChannel(p.ctx(), g.ID, rapid.SampledFrom([]string{"three", "four"}).Draw(p.T, "channel"), "a <description>\nof two lines")
}

func (p *awareProgram) edge() {
	graphs, err := p.e.Status("")
	p.must(err)
	var channels []journal.ChannelID
	for _, g := range graphs {
		for _, ch := range g.Channels {
			channels = append(channels, ch.ID)
		}
	}
	if len(channels) == 0 {
		return
	}
	p.attempt(topology.SetEdge{
		Creature: p.some(), Channel: rapid.SampledFrom(channels).Draw(p.T, "channel"),
		Direction: rapid.SampledFrom([]journal.Direction{journal.Listen, journal.Send}).Draw(p.T, "direction"), On: rapid.Bool().Draw(p.T, "on"),
	})
}

func (p *awareProgram) rank() {
	p.change(topology.SetPrivileged{ID: p.some(), Privileged: rapid.Bool().Draw(p.T, "privileged")})
}

func (p *awareProgram) stop() {
	p.change(topology.SetStopped{ID: p.some(), Stopped: rapid.Bool().Draw(p.T, "stopped")})
}

func (p *awareProgram) reopenAware() {
	p.idle()
	p.shut()
	p.open()
	_, problems, err := p.e.Restore(p.ctx())
	p.must(err)
	if len(problems) > 0 {
		p.Fatalf("Restore: %v", problems)
	}
}

// verify lets every creature look, and compares the results.
func (p *awareProgram) verify() {
	p.idle()
	graphs, err := p.e.Status("")
	p.must(err)
	for _, id := range p.members {
		want := expected(graphs, id)
		view, err := p.e.Awareness(id)
		p.must(err)
		p.compare(fmt.Sprintf("%s from outside", want.Self.Name), id, reading{revision: view.Revision(), document: view.Document(), markdown: string(view.Markdown())}, want)
		if want.Self.State != "running" {
			continue
		}
		if last := p.witness.last(id); last.kind == abi.KindGraphChanged && last.revision != view.Revision() {
			p.Fatalf("%s was last notified of revision %d, but the current one is %d", want.Self.Name, last.revision, view.Revision())
		}
		_, err = p.e.SendTo(p.ctx(), id, engine.Outgoing{})
		p.must(err)
		p.idle()
		p.compare(want.Self.Name+" in a turn", id, p.witness.last(id), want)
	}
	p.checkNotified()
}

// compare compares a reading with the expected document and with the previous reading.
func (p *awareProgram) compare(who string, id journal.CreatureID, got reading, want *outlook.Awareness) {
	p.Helper()
	if got.document == nil {
		p.Fatalf("%s has seen nothing", who)
	}
	bare := *got.document
	bare.Revision = 0
	if !reflect.DeepEqual(&bare, want) {
		g, _ := json.MarshalIndent(&bare, "", " ")
		w, _ := json.MarshalIndent(want, "", " ")
		p.Fatalf("%s sees\n%s\nwant\n%s", who, g, w)
	}
	if got.document.Revision != got.revision || got.revision == 0 {
		p.Fatalf("%s reads a document of revision %d, but the source says %d", who, got.document.Revision, got.revision)
	}
	before := p.known[id]
	p.known[id] = got
	if before.document == nil {
		return
	}
	same := withoutRevision(before) == withoutRevision(got)
	old := *before.document
	old.Revision = 0
	switch json := reflect.DeepEqual(&old, &bare); {
	case json != same:
		p.Fatalf("%s: JSON is unchanged: %v; Markdown is unchanged: %v", who, json, same)
	case same && got.revision != before.revision && !p.several:
		p.Fatalf("%s: revision %d became %d, although nothing changed", who, before.revision, got.revision)
	case !same && got.revision <= before.revision:
		p.Fatalf("%s: revision %d became %d, although the document changed", who, before.revision, got.revision)
	}
}

func withoutRevision(r reading) string {
	return strings.Replace(r.markdown, fmt.Sprintf("- revision: %d\n", r.revision), "", 1)
}

// checkNotified goes through everything that watchers have read. Nothing has changed
// between two turns unless the later one handles graph_changed, and graph_changed
// always brings a new revision.
func (p *awareProgram) checkNotified() {
	p.witness.mu.Lock()
	defer p.witness.mu.Unlock()
	for id, all := range p.witness.reads {
		watcher := slices.ContainsFunc(all, func(r reading) bool { return r.kind == abi.KindGraphChanged })
		for i := range len(all) - 1 {
			a, b := all[i], all[i+1]
			switch {
			case b.kind == abi.KindGraphChanged && b.revision <= a.revision:
				p.Fatalf("%s was notified of revision %d after %d", id, b.revision, a.revision)
			case watcher && b.kind == abi.KindMessage && b.revision != a.revision:
				p.Fatalf("%s got a message before it was notified of revision %d", id, b.revision)
			}
		}
	}
}
