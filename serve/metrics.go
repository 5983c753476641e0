package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/inspect"
)

// maxSeries is the number of creatures up to which each has series of its own. Beyond it,
// only deployments have.
const maxSeries = 1000

// metrics answers with figures in the text format of Prometheus. They are read from the
// status of the graphs at each request, so that they cost nothing meanwhile.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	rights, err := h.caller(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	if len(rights.Graphs) > 0 {
		fail(w, refused("the metrics are of all graphs, and the token is not", "use a token without graphs"))
		return
	}
	graphs, err := h.t.Status("")
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(h.exposition(graphs))
}

// subject is what a series of figures is about. Names need not be unique, so several
// creatures may share one.
type subject struct{ deployment, creature string }

func (s subject) labels() string {
	return fmt.Sprintf(`{deployment="%s",creature="%s"}`, label(s.deployment), label(s.creature))
}

// label escapes the value of a label.
func label(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// figures are what is added up about a subject.
type figures struct {
	inspect.Counters
	pending uint64
	memory  int64
}

// perSubject are the metrics of subjects.
var perSubject = []struct {
	name, kind, help string
	value            func(*figures) uint64
}{
	{"terrarium_turns_total", "counter", "Turns that have ended.", func(f *figures) uint64 { return f.Turns }},
	{"terrarium_turn_failures_total", "counter", "Turns that have failed.", func(f *figures) uint64 { return f.Failures }},
	{"terrarium_messages_sent_total", "counter", "Messages that creatures have sent.", func(f *figures) uint64 { return f.Sent }},
	{"terrarium_dead_letters_total", "counter", "Deliveries that have become dead letters.", func(f *figures) uint64 { return f.DeadLetters }},
	{"terrarium_denied_total", "counter", "Calls and messages that policies have denied.", func(f *figures) uint64 { return f.Denied }},
	{"terrarium_fuel_total", "counter", "Fuel that turns have used.", func(f *figures) uint64 { return f.Fuel }},
	{"terrarium_pending_deliveries", "gauge", "Deliveries that wait.", func(f *figures) uint64 { return f.pending }},
	{"terrarium_memory_bytes", "gauge", "Linear memory of instances.", func(f *figures) uint64 { return uint64(max(f.memory, 0)) }},
}

// exposition returns the text of all metrics.
func (h *Handler) exposition(graphs []inspect.GraphStatus) []byte {
	var b bytes.Buffer
	one := func(name, kind, help string, value any) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
	}
	fmt.Fprintf(&b, "# HELP terrarium_build_info The version.\n# TYPE terrarium_build_info gauge\nterrarium_build_info{version=%q} 1\n", terrarium.Version)
	one("terrarium_graphs", "gauge", "Live graphs.", len(graphs))
	one("terrarium_streams", "gauge", "Open streams of events.", len(h.streams))
	one("terrarium_unaccounted_bytes", "gauge", "Memory of the process that is not accounted to creatures.", h.t.UnaccountedBytes())
	one("terrarium_problems", "gauge", "Problems of the session directory.", len(h.t.Problems()))
	one("terrarium_policy_failures", "gauge", "Policies that have failed to decide.", len(h.t.PolicyFailures()))
	states, subjects := addUp(graphs)
	b.WriteString("# HELP terrarium_creatures Creatures, by state.\n# TYPE terrarium_creatures gauge\n")
	for _, state := range slices.Sorted(maps.Keys(states)) {
		fmt.Fprintf(&b, "terrarium_creatures{state=\"%s\"} %d\n", label(state), states[state])
	}
	order := slices.SortedFunc(maps.Keys(subjects), func(x, y subject) int {
		return cmp.Or(cmp.Compare(x.deployment, y.deployment), cmp.Compare(x.creature, y.creature))
	})
	for _, m := range perSubject {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, s := range order {
			fmt.Fprintf(&b, "%s%s %d\n", m.name, s.labels(), m.value(subjects[s]))
		}
	}
	return b.Bytes()
}

// addUp returns the number of creatures by state, and the figures by subject.
func addUp(graphs []inspect.GraphStatus) (states map[string]int, subjects map[subject]*figures) {
	states, subjects = map[string]int{}, map[subject]*figures{}
	total := 0
	for i := range graphs {
		total += len(graphs[i].Creatures)
	}
	for i := range graphs {
		for k := range graphs[i].Creatures {
			c := &graphs[i].Creatures[k]
			states[string(c.State)]++
			s := subject{deployment: c.Deployment}
			if total <= maxSeries {
				s.creature = c.Name
			}
			f := subjects[s]
			if f == nil {
				f = &figures{}
				subjects[s] = f
			}
			f.add(c)
		}
	}
	return states, subjects
}

func (f *figures) add(c *inspect.CreatureStatus) {
	f.Turns += c.Counters.Turns
	f.Failures += c.Counters.Failures
	f.Sent += c.Counters.Sent
	f.DeadLetters += c.Counters.DeadLetters
	f.Denied += c.Counters.Denied
	f.Fuel += c.Counters.Fuel
	f.memory += c.MemoryBytes
	for _, cursor := range c.Cursors {
		f.pending += cursor.Pending
	}
}
