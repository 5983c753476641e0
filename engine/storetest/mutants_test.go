package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/conformance/stores"
	"github.com/seed47132306/terrarium/engine/internal/sim"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
)

var update = flag.Bool("update", false, "write the table of mutants again")

// mutant is a wrong store: a right store whose calls are changed.
type mutant struct {
	wrong string // what is wrong with it
	// files wants a store with files; the others are in memory, which is faster.
	files bool
	hangs string // a check that such a store would leave waiting
	hooks hooks
}

// lose drops the event at place n of a list.
func lose(n int) func(*journal.SessionInfo, journal.HistoryQuery, []journal.Event) []journal.Event {
	return func(_ *journal.SessionInfo, _ journal.HistoryQuery, list []journal.Event) []journal.Event {
		if len(list) <= n {
			return list
		}
		return slices.Delete(slices.Clone(list), n, n+1)
	}
}

// logMutants break what the log promises.
func logMutants() []mutant {
	each := func(change func(list []journal.Event) []journal.Event) hooks {
		return hooks{history: func(_ *journal.SessionInfo, _ journal.HistoryQuery, list []journal.Event) []journal.Event {
			return change(slices.Clone(list))
		}}
	}
	return []mutant{
		{wrong: "loses an event", hooks: hooks{history: lose(3)}},
		{wrong: "returns an event twice", hooks: each(func(list []journal.Event) []journal.Event {
			return append(list, list[max(0, len(list)-1):]...)
		})},
		{wrong: "swaps two events", hooks: each(func(list []journal.Event) []journal.Event {
			if len(list) > 1 {
				list[0], list[1] = list[1], list[0]
			}
			return list
		})},
		{wrong: "ends payloads at a NUL", hooks: each(func(list []journal.Event) []journal.Event {
			for i := range list {
				list[i].Payload, _, _ = bytes.Cut(list[i].Payload, []byte{0})
			}
			return list
		})},
		{wrong: "loses the causes of events", hooks: each(func(list []journal.Event) []journal.Event {
			for i := range list {
				list[i].Cause = journal.EventID{}
			}
			return list
		})},
		{wrong: "shows a part of a record", hooks: hooks{flush: func(*wrongStore) {}, append: func(j *wrongStore, r *journal.Record) {
			j.release()
			if n := len(r.Events); n > 1 {
				part := *r
				part.Events = r.Events[:n-1]
				j.Store.Append(&part)
				j.hold(&journal.Record{Events: r.Events[n-1:]})
				return
			}
			j.Store.Append(r)
		}}},
		{wrong: "reads lag behind by a record", hangs: "waiting/notify", hooks: hooks{flush: func(*wrongStore) {}, append: func(j *wrongStore, r *journal.Record) {
			j.release()
			j.hold(r)
		}}},
		{wrong: "keeps the first of several rows", hooks: hooks{append: func(j *wrongStore, r *journal.Record) {
			if j.Store.Durable() > 0 || len(r.Events) == 0 {
				changed := *r
				changed.State = slices.DeleteFunc(slices.Clone(r.State), func(row journal.StateRow) bool {
					rows, err := j.Store.State(context.Background(), row.Creature)
					return err == nil && rows[row.Key] != nil
				})
				r = &changed
			}
			j.Store.Append(r)
		}}},
		{wrong: "ignores what a record drops", hooks: hooks{append: func(j *wrongStore, r *journal.Record) {
			changed := *r
			changed.Drop = journal.Drop{}
			j.Store.Append(&changed)
		}}},
		{wrong: "takes empty values for removed ones", hooks: hooks{state: func(rows map[string][]byte) map[string][]byte {
			for key, value := range rows {
				if len(value) == 0 {
					delete(rows, key)
				}
			}
			return rows
		}}},
		{wrong: "loses state", hooks: hooks{state: func(map[string][]byte) map[string][]byte { return map[string][]byte{} }}},
		{wrong: "returns messages in the opposite order", hooks: hooks{messages: func(list []journal.Event) []journal.Event {
			slices.Reverse(list)
			return list
		}}},
		{wrong: "loses the last message of a page", hooks: hooks{messages: func(list []journal.Event) []journal.Event { return list[:max(0, len(list)-1)] }}},
		{wrong: "ignores the kinds of a query", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Kinds = nil }}},
		{wrong: "ignores the creature of a query", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Creature = "" }}},
		{wrong: "ignores the channel of a query", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Channel = "" }}},
		{wrong: "ignores the turn of a query", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Turn = journal.EventID{} }}},
		{wrong: "returns the oldest instead of the newest", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Newest = false }}},
		{wrong: "returns everything without a limit", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Limit = cmp.Or(q.Limit, 1<<20) }}},
		{wrong: "returns what a session inherited as its own", hooks: hooks{query: func(q *journal.HistoryQuery) { q.Own = false }}},
		{wrong: "has an empty history for unknown sessions", hooks: hooks{failed: func(err error) error {
			if abi.CodeOf(err) == abi.NotFound {
				return nil
			}
			return err
		}}},
	}
}

// cutMutants break what cuts promise.
func cutMutants() []mutant {
	children := func(change func(c *journal.CutChild)) hooks {
		return hooks{cut: func(c *journal.Cut) {
			for i := range c.Children {
				change(&c.Children[i])
			}
		}}
	}
	return []mutant{
		{wrong: "closes the parents of a cut that fails", hooks: hooks{cutFails: func(parents []journal.Store) { _ = parents[0].Close(context.Background()) }}},
		{wrong: "loses the rows of a child's first record", hooks: children(func(c *journal.CutChild) {
			if first := c.First; first != nil {
				c.First = func(o journal.Origin) *journal.Record {
					if r := first(o); r != nil {
						return &journal.Record{Events: r.Events}
					}
					return nil
				}
			}
		})},
		{wrong: "loses an event in a cut", hooks: hooks{history: func(info *journal.SessionInfo, q journal.HistoryQuery, list []journal.Event) []journal.Event {
			if len(info.Parents) == 0 {
				return list
			}
			return lose(0)(info, q, list)
		}}},
		{wrong: "leaves state and dead letters behind in a cut", hooks: children(func(c *journal.CutChild) { c.Creatures = nil })},
		{wrong: "leaves producers and readers behind in a cut", hooks: children(func(c *journal.CutChild) { c.Channels = nil })},
		{wrong: "gives every child the state of all creatures", hooks: hooks{cut: func(c *journal.Cut) {
			var all []journal.CreatureID
			for i := range c.Children {
				all = append(all, c.Children[i].Creatures...)
			}
			c.Children[0].Creatures = all
		}}},
		{wrong: "has no history of ended sessions", hooks: hooks{history: func(info *journal.SessionInfo, _ journal.HistoryQuery, list []journal.Event) []journal.Event {
			if !info.Live {
				return nil
			}
			return list
		}}},
		{wrong: "adds to the history of an ended session", hooks: hooks{history: func(info *journal.SessionInfo, _ journal.HistoryQuery, list []journal.Event) []journal.Event {
			if !info.Live && len(list) > 0 {
				return append(list, list[0])
			}
			return list
		}}},
		{wrong: "forgets the grandparents of a session", hooks: hooks{lineage: func(list []journal.SessionInfo) []journal.SessionInfo {
			return list[:min(len(list), 1+len(list[0].Parents))]
		}}},
		{wrong: "names the oldest ancestor first", hooks: hooks{lineage: func(list []journal.SessionInfo) []journal.SessionInfo {
			slices.Reverse(list)
			return list
		}}},
		{wrong: "names no parents", hooks: hooks{lineage: func(list []journal.SessionInfo) []journal.SessionInfo {
			for i := range list {
				list[i].Parents = nil
			}
			return list
		}}},
		{wrong: "loses dead letters in a cut", hooks: hooks{letters: func(info *journal.SessionInfo, rows []journal.DeadLetterRow) []journal.DeadLetterRow {
			if len(info.Parents) > 0 {
				return rows[:len(rows)/2]
			}
			return rows
		}}},
		{wrong: "loses the dead letters of removed creatures", hooks: hooks{letters: func(_ *journal.SessionInfo, rows []journal.DeadLetterRow) []journal.DeadLetterRow {
			return slices.DeleteFunc(rows, func(row journal.DeadLetterRow) bool { return row.Creature == "gone" })
		}}},
		{wrong: "counts only what a session wrote when it verifies", hooks: hooks{verify: func(r *journal.VerifyReport) { r.Events = min(r.Events, 10) }}},
	}
}

// restartMutants break what survives a restart, and what a directory reports about itself.
func restartMutants() []mutant {
	list := []mutant{
		{wrong: "lists ended sessions as live", hooks: hooks{sessions: func(list []journal.SessionInfo) []journal.SessionInfo {
			for i := range list {
				list[i].Live = true
			}
			return list
		}}},
		{wrong: "lists only live sessions", hooks: hooks{sessions: func(list []journal.SessionInfo) []journal.SessionInfo {
			return slices.DeleteFunc(list, func(i journal.SessionInfo) bool { return !i.Live })
		}}},
		{wrong: "lists the newest session first", hooks: hooks{sessions: func(list []journal.SessionInfo) []journal.SessionInfo {
			slices.Reverse(list)
			return list
		}}},
		{wrong: "continues the origin of an earlier process", hooks: hooks{origin: func() func(*wrongStore) journal.Origin {
			var mu sync.Mutex
			first := map[journal.SessionID]journal.Origin{}
			return func(j *wrongStore) journal.Origin {
				mu.Lock()
				defer mu.Unlock()
				session := j.Info().Session
				if _, known := first[session]; !known {
					first[session] = j.Store.Origin()
				}
				return first[session]
			}
		}()}},
		{wrong: "creates the stores that it can", hooks: hooks{create: func(s journal.Storage, err error, specs []journal.StoreSpec) {
			if err != nil && len(specs) > 1 {
				list, _ := s.Create(context.Background(), specs[0])
				for _, j := range list {
					_ = j.Close(context.Background())
				}
			}
		}}},
	}
	for name, forget := range map[string]func(g *journal.SavedGraph){
		"creatures": func(g *journal.SavedGraph) { g.Creatures = nil },
		"channels":  func(g *journal.SavedGraph) { g.Channels = nil },
		"heads":     func(g *journal.SavedGraph) { g.Heads = nil },
		"edges":     func(g *journal.SavedGraph) { g.Edges = nil },
		"cursors":   func(g *journal.SavedGraph) { g.Cursors = nil },
		"producers": func(g *journal.SavedGraph) { g.Producers = nil },
		"timers":    func(g *journal.SavedGraph) { g.Timers = nil },
		"requests":  func(g *journal.SavedGraph) { g.Requests = nil },
		"wires":     func(g *journal.SavedGraph) { g.Wires = nil },
		"metadata":  func(g *journal.SavedGraph) { g.Meta = map[string]string{} },
		"last time": func(g *journal.SavedGraph) { g.LastTime = 0 },
	} {
		list = append(list, mutant{wrong: "forgets in a restart: " + name, hooks: hooks{saved: forget}})
	}
	slices.SortFunc(list, func(a, b mutant) int { return strings.Compare(a.wrong, b.wrong) })
	return list
}

// durabilityMutants break what is acknowledged and verified.
func durabilityMutants() []mutant {
	return []mutant{
		{wrong: "acknowledges what was never written", hooks: hooks{wait: func(*wrongStore, context.Context, uint64) error { return nil }}},
		{wrong: "forgets what it acknowledged", files: true, hooks: hooks{
			append: func(j *wrongStore, r *journal.Record) { j.hold(r) },
			wait:   func(*wrongStore, context.Context, uint64) error { return nil },
		}},
		{wrong: "finds nothing when it verifies", hooks: hooks{verify: func(r *journal.VerifyReport) {
			*r = journal.VerifyReport{Session: r.Session, Events: r.Events}
		}}},
		{wrong: "finds missing events in sound sessions", hooks: hooks{verify: func(r *journal.VerifyReport) { r.Missing = append(r.Missing, "one") }}},
		{wrong: "returns events that were altered", files: true, hooks: hooks{failed: func(err error) error {
			if abi.CodeOf(err) == abi.Storage {
				return nil
			}
			return err
		}}},
		{wrong: "ignores retention", files: true, hooks: hooks{keep: func(*wrong, journal.SessionID, int64) int64 { return 0 }}},
		{wrong: "prunes one event too many", files: true, hooks: hooks{keep: func(_ *wrong, _ journal.SessionID, n int64) int64 { return n - 1 }}},
		{wrong: "prunes what is still to be handled", files: true, hooks: hooks{
			keep: func(w *wrong, session journal.SessionID, n int64) int64 { w.pruned[session] = n; return n },
			history: func(_ *journal.SessionInfo, _ journal.HistoryQuery, list []journal.Event) []journal.Event {
				return list[max(0, len(list)-10):]
			},
		}},
		{wrong: "takes pruned events for missing ones", files: true, hooks: hooks{verify: func(r *journal.VerifyReport) {
			if r.Events < 100 {
				r.Missing = append(r.Missing, "the rest")
			}
		}}},
		{wrong: "forks without the newest records", files: true, hooks: hooks{fork: func(w *wrong, session journal.SessionID, dir string) (journal.SessionID, error) {
			ctx := context.Background()
			events, err := w.History(ctx, session, journal.HistoryQuery{})
			if err != nil {
				return "", err
			}
			fork, _, err := w.Storage.(journal.Exporter).ForkAt(ctx, session, journal.Mark{}.Next(&events[4]), dir)
			return fork, err
		}}},
		{wrong: "removes what is in the way of a fork", files: true, hooks: hooks{fork: func(w *wrong, session journal.SessionID, dir string) (journal.SessionID, error) {
			if err := os.RemoveAll(dir); err != nil {
				return "", err
			}
			return w.Storage.(journal.Exporter).Fork(context.Background(), session, dir)
		}}},
	}
}

// pruning is a SQLite directory that the suite can prune.
type pruning struct{ *sqlitestore.Directory }

func (p pruning) KeepNewest(ctx context.Context, session journal.SessionID, events int64) error {
	_, err := p.Prune(ctx, session, sqlitestore.Retention{Events: events})
	return err
}

// subject is the store of a mutant.
func (m *mutant) subject() *stores.Subject {
	var mu sync.Mutex
	disks := map[string]*sim.Disk{}
	return &stores.Subject{Name: m.wrong, Limit: time.Minute, Open: func(ctx context.Context, dir string) (journal.Storage, error) {
		w := &wrong{hooks: &m.hooks, pruned: map[journal.SessionID]int64{}}
		if m.files {
			d, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
			if err != nil {
				return nil, err
			}
			w.Storage = d
			return &wrongFiles{w, d, pruning{d}}, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if disks[dir] == nil {
			disks[dir] = sim.NewDisk(uint64(len(disks)))
		}
		w.Storage = disks[dir].Boot()
		return w, nil
	}}
}

// quick reports whether a check is run on a mutant: it takes only milliseconds, and the slow
// checks would find no more.
func (m *mutant) quick(check string) bool {
	group := filepath.Dir(check)
	if m.files {
		return slices.Contains([]string{"durability", "retention", "copies"}, group)
	}
	return group != "generations" && group != "model" && check != "live/dead-letters" && check != "messages/many" && check != m.hangs && check != "waiting/room"
}

// TestEveryRuleHasAMutant runs the suite over wrong stores. Every store is caught, and every
// requirement that stores are scored by is violated by at least one. The table lists which check
// catches which store. make test runs one store in four, and compares its line of the table.
func TestEveryRuleHasAMutant(t *testing.T) {
	set, err := requirements.Load("store-1")
	if err != nil {
		t.Fatal(err)
	}
	table := "# Faulty stores: how many checks catch each, and the first of these checks.\n"
	missed := map[string][]string{}
	const golden = "testdata/mutants.txt"
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	whole := true
	for i, m := range slices.Concat(logMutants(), cutMutants(), restartMutants(), durabilityMutants()) {
		if !*update && !seeded.Part(i, 4) {
			whole = false
			continue
		}
		results, err := stores.Run(t.Context(), m.subject(), m.quick)
		if err != nil {
			t.Fatal(err)
		}
		r := report.Report{Results: results}
		r.Settle(set, nil, func(string) bool { return true })
		var by []string
		for _, x := range results {
			switch x.Verdict {
			case report.Failed:
				by = append(by, x.Check)
			case report.Inconclusive:
				t.Errorf("%s: %s is inconclusive: %q", m.wrong, x.Check, x.Seen)
			}
		}
		for _, o := range r.Requirements {
			if o.Verdict == report.Failed {
				missed[o.Rule] = append(missed[o.Rule], m.wrong)
			}
		}
		if len(by) == 0 {
			t.Errorf("%s: no check notices that", m.wrong)
			continue
		}
		line := fmt.Sprintf("%-50s %3d  %s\n", m.wrong, len(by), by[0])
		table += line
		if !*update && !strings.Contains(string(want), "\n"+line) {
			t.Errorf("%s is stale, it has no line %s", golden, line)
		}
	}
	if !whole {
		return
	}
	table += "\n# The rules, and how many of the stores violate each.\n"
	for _, q := range set.Requirements {
		if len(q.Store) > 0 && len(missed[q.Rule]) == 0 {
			t.Errorf("no mutant misses %s: %s", q.Rule, q.Words)
		}
		if len(q.Store) > 0 {
			table += fmt.Sprintf("%-10s %3d\n", q.Rule, len(missed[q.Rule]))
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !*update && string(want) != table {
		t.Errorf("%s is stale: run go test ./engine/storetest -run Mutant -update\n%s", golden, table)
	}
}

// TestRightStore runs the same checks over a store whose hooks change nothing.
func TestRightStore(t *testing.T) {
	for _, m := range []mutant{{wrong: "nothing"}, {wrong: "nothing", files: true}} {
		results, err := stores.Run(t.Context(), m.subject(), m.quick)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range results {
			if x.Verdict != report.Passed && x.Verdict != report.NotApplicable {
				t.Errorf("%s: %s %q", x.Check, x.Verdict, x.Seen)
			}
		}
	}
}
