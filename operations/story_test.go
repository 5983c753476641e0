package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The stories show why graphs change while they run. Each runs from beginning to end,
// with real modules and a session directory:
//
//   - TestStoryAPrivilegedNodeSpawnsASpecialist
//   - TestStoryTwoSessionsMerge
//   - TestStoryABridgeIsTornDown
//   - TestStoryObservedFromOutside

// story is a session in which something happens.
type story struct {
	t   *testing.T
	dir string
	*terrarium.Terrarium
}

func newStory(t *testing.T) *story {
	dir := filepath.Join(t.TempDir(), "session")
	return &story{t, dir, open(t, terrarium.Options{Dir: dir})}
}

// again closes everything, as if the process ended, and resumes as the next process
// would.
func (s *story) again() {
	s.t.Helper()
	if err := s.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.Terrarium = open(s.t, terrarium.Options{Dir: s.dir})
}

// recipe writes a recipe to a file and applies it. The file is named after the
// deployment.
func (s *story) recipe(name, text string) *engine.Applied {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name+".hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	applied, err := s.Apply(s.t.Context(), path, terrarium.RecipeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return applied
}

// outcome is what an operator reports about a call.
type outcome struct {
	OK     bool
	Code   string
	Error  string
	Result struct {
		Creature terrarium.CreatureID
		Channel  terrarium.ChannelID
		Delta    journal.Delta
	}
}

// ask makes an operator call tools in one turn: each call is a tool and its arguments.
func (s *story) ask(operator terrarium.CreatureID, calls ...string) []outcome {
	s.t.Helper()
	list := []string{}
	for i := 0; i < len(calls); i += 2 {
		list = append(list, fmt.Sprintf(`{"tool": %q, "args": %s}`, calls[i], calls[i+1]))
	}
	order, err := json.Marshal(map[string]any{"calls": raw(list)})
	if err != nil {
		s.t.Fatal(err)
	}
	reply, err := s.Request(s.t.Context(), operator, terrarium.Outgoing{Payload: order}, 5*time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	var answer struct{ Results []outcome }
	if err := json.Unmarshal(reply, &answer); err != nil || len(answer.Results) == 0 {
		s.t.Fatalf("the operator replies %s, %v", reply, err)
	}
	return answer.Results
}

func raw(list []string) (out []json.RawMessage) {
	for _, text := range list {
		out = append(out, json.RawMessage(text))
	}
	return out
}

// granted is ask for a privileged operator, whose calls must succeed.
func (s *story) granted(operator terrarium.CreatureID, calls ...string) []outcome {
	s.t.Helper()
	out := s.ask(operator, calls...)
	for i, o := range out {
		if !o.OK {
			s.t.Fatalf("%s %s: %s, %s", calls[2*i], calls[2*i+1], o.Code, o.Error)
		}
	}
	return out
}

// refused is ask for a call that must be refused and change nothing.
func (s *story) refused(code string, operator terrarium.CreatureID, tool, args string) {
	s.t.Helper()
	before := graphShape(s.t, s.Terrarium)
	if o := s.ask(operator, tool, args)[0]; o.Code != code {
		s.t.Errorf("%s %s: %+v, want the code %s", tool, args, o, code)
	}
	if after := graphShape(s.t, s.Terrarium); after != before {
		s.t.Errorf("refused, %s %s changed the graph from\n%s\nto\n%s", tool, args, before, after)
	}
}

// say sends a line on a channel and waits until all its consequences have been handled.
func (s *story) say(ch terrarium.ChannelID, line string) {
	s.t.Helper()
	if _, err := s.Send(s.t.Context(), ch, terrarium.Outgoing{Payload: []byte(line)}); err != nil {
		s.t.Fatal(err)
	}
	s.idle()
}

func (s *story) idle() {
	s.t.Helper()
	if err := s.WaitIdle(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) member(id terrarium.CreatureID) inspect.CreatureStatus {
	s.t.Helper()
	creatures := graphOf(s.t, s.Terrarium, id).Creatures
	return creatures[slices.IndexFunc(creatures, func(c inspect.CreatureStatus) bool { return c.ID == id })]
}

// past returns the history of a graph or session.
func (s *story) past(of string, kinds ...journal.EventKind) []terrarium.Event {
	s.t.Helper()
	events, err := s.History(s.t.Context(), of, journal.HistoryQuery{Kinds: kinds})
	if err != nil {
		s.t.Fatal(err)
	}
	return events
}

// session returns what is known about a session.
func (s *story) session(id terrarium.SessionID) journal.SessionInfo {
	s.t.Helper()
	lineage, err := s.Lineage(s.t.Context(), string(id))
	if err != nil || len(lineage) == 0 || lineage[0].Session != id {
		s.t.Fatalf("the lineage of %s is %+v, %v", id, lineage, err)
	}
	return lineage[0]
}

// sound verifies the sessions of creatures.
func (s *story) sound(members ...terrarium.CreatureID) {
	s.t.Helper()
	for _, id := range members {
		report, err := s.Verify(s.t.Context(), string(graphOf(s.t, s.Terrarium, id).ID))
		if err != nil || !NewVerifyResult(&report).Sound() {
			s.t.Errorf("Verify: %+v, %v", report, err)
		}
	}
}

// watcher is an observer outside the graph.
type watcher struct {
	t *testing.T
	*engine.Subscription
	seen []terrarium.Event
}

func (s *story) watch(f terrarium.Filter) *watcher {
	w := &watcher{t: s.t, Subscription: s.Subscribe(f, 0)}
	s.t.Cleanup(w.Close)
	return w
}

// sees waits until the watcher has seen a certain further event, and returns it.
func (w *watcher) sees(kind journal.EventKind, about terrarium.CreatureID) terrarium.Event {
	w.t.Helper()
	for {
		if e := w.next(fmt.Sprintf("%s of %q", kind, about)); e.Kind == kind && (about == "" || e.Creature == about) {
			return e
		}
	}
}

// saw returns the event with an id, once the watcher has seen it.
func (w *watcher) saw(id journal.EventID) terrarium.Event {
	w.t.Helper()
	i := slices.IndexFunc(w.seen, func(e terrarium.Event) bool { return e.ID == id })
	for i < 0 {
		if w.next(id.String()).ID == id {
			i = len(w.seen) - 1
		}
	}
	return w.seen[i]
}

func (w *watcher) next(awaited string) terrarium.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	o, err := w.Next(ctx)
	if err != nil {
		w.t.Fatalf("%s is not seen, but %v: %v", awaited, kinds(w.seen), err)
	}
	w.seen = append(w.seen, o.Event)
	return o.Event
}

func kinds(events []terrarium.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Kind.String())
	}
	return out
}

// payload decodes the payload of an event.
func payload[P any](t *testing.T, e terrarium.Event) (p P) {
	t.Helper()
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatalf("%s says %s: %v", e.Kind, e.Payload, err)
	}
	return p
}

// idsOf returns the ids of events, in their order.
func idsOf(events []terrarium.Event) (out []journal.EventID) {
	for _, e := range events {
		out = append(out, e.ID)
	}
	return out
}
