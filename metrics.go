package terrarium

import (
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Metric is a measured value of a terrarium, in the form that exporters of metrics
// need.
type Metric struct {
	Name string // with its unit, in the style of Prometheus: terrarium_turns_total
	Help string
	// Counter says that the value only rises, from 0 at the start of the engine, as
	// long as the creature that Labels name exists. Other values can also fall.
	Counter bool
	// Labels name the creature that the value is about: creature (its id), name and
	// deployment. Nil means the whole engine.
	Labels map[string]string
	Value  float64
}

// ofCreature is a figure that every creature has.
type ofCreature struct {
	name, help string
	counter    bool
	value      func(*inspect.CreatureStatus) uint64
}

var ofCreatures = []ofCreature{
	{"terrarium_turns_total", "turns that have ended", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Turns }},
	{"terrarium_failures_total", "turns that have failed", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Failures }},
	{"terrarium_sent_total", "messages sent", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Sent }},
	{"terrarium_denied_total", "what policies have denied", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Denied }},
	{"terrarium_creature_dead_letters_total", "deliveries that became dead letters", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.DeadLetters }},
	{"terrarium_throttled_total", "waits because of a rate", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Throttled }},
	{"terrarium_fuel_total", "fuel used", true, func(c *inspect.CreatureStatus) uint64 { return c.Counters.Fuel }},
	{"terrarium_instance_starts_total", "instances started", true, func(c *inspect.CreatureStatus) uint64 { return c.InstanceStarts }},
	{"terrarium_memory_bytes", "linear memory", false, func(c *inspect.CreatureStatus) uint64 { return uint64(max(c.MemoryBytes, 0)) }},
	{"terrarium_pending_messages", "messages that wait", false, func(c *inspect.CreatureStatus) (sum uint64) {
		for _, cursor := range c.Cursors {
			sum += cursor.Pending
		}
		return sum
	}},
	{"terrarium_waiting_approvals", "open questions of policies about its turn", false, func(c *inspect.CreatureStatus) uint64 { return uint64(c.Approvals) }},
	{"terrarium_running", "1 if it takes deliveries, 0 if it is stopped, paused, quarantined, backing off or waits for approval", false, func(c *inspect.CreatureStatus) uint64 {
		if c.State == journal.Running {
			return 1
		}
		return 0
	}},
}

// Metrics returns the current values: first those of the engine, then, metric by metric, those
// of each creature. It costs as much as [Terrarium.Status]; call it only when the values are
// collected, at most every few seconds. For what happens in between, use
// [Terrarium.Subscribe].
func (t *Terrarium) Metrics() ([]Metric, error) {
	graphs, err := t.Status("")
	if err != nil {
		return nil, err
	}
	creatures, hibernated := 0, 0
	for i := range graphs {
		creatures, hibernated = creatures+len(graphs[i].Creatures), hibernated+graphs[i].Hibernated
	}
	out := make([]Metric, 0, 8+creatures*len(ofCreatures))
	out = append(out,
		Metric{Name: "terrarium_graphs", Help: "graphs that run", Value: float64(len(graphs))},
		Metric{Name: "terrarium_creatures", Help: "creatures", Value: float64(creatures)},
		Metric{Name: "terrarium_hibernated_creatures", Help: "creatures that hibernate", Value: float64(hibernated)},
		Metric{Name: "terrarium_dead_letters_total", Help: "deliveries that became dead letters", Counter: true, Value: float64(t.DeadLetterCount())},
		Metric{Name: "terrarium_failed_policies", Help: "policies that have failed to decide", Counter: true, Value: float64(len(t.PolicyFailures()))},
		Metric{Name: "terrarium_problems", Help: "problems of the session directory", Value: float64(len(t.Problems()))},
		Metric{Name: "terrarium_unaccounted_bytes", Help: "Go heap that is not accounted to creatures", Value: float64(t.UnaccountedBytes())},
	)
	if d := t.Directory(); d != nil {
		wear := d.Wear()
		out = append(out,
			Metric{Name: "terrarium_store_syncs_total", Help: "syncs of logs of the session directory", Counter: true, Value: float64(wear.Syncs)},
			Metric{Name: "terrarium_store_written_bytes_total", Help: "bytes written to logs of the session directory", Counter: true, Value: float64(wear.WrittenBytes)},
		)
	}
	for _, f := range ofCreatures {
		for i := range graphs {
			for j := range graphs[i].Creatures {
				c := &graphs[i].Creatures[j]
				labels := map[string]string{"creature": string(c.ID), "name": c.Name, "deployment": c.Deployment}
				out = append(out, Metric{Name: f.name, Help: f.help, Counter: f.counter, Labels: labels, Value: float64(f.value(c))})
			}
		}
	}
	return out, nil
}
