// Package spending keeps what creatures have used of the budgets of capabilities, for each
// graph.
//
// A ledger has two counters for each creature and unit: what was charged, and what was
// given back of that. Both only rise, and only in the graph that has the creature. So the
// greater of two values is the later one. A ledger that continues others takes the
// greater value of each counter, so graphs that were split and merge again count every
// amount once. A graph that was split off keeps what the whole had used until then.
// Removed creatures stay in the ledger, so removing a creature gives nothing back.
package spending

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/internal/stopping"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Key is a creature's use of a capability.
type Key struct {
	Capability string // its kind and name
	Creature   journal.CreatureID
}

// Counters count how much of a unit was charged, and how much of that was credited again.
type Counters struct {
	Charged  int64 `json:"charged"`
	Returned int64 `json:"returned,omitempty"`
}

// Most is the largest amount that is counted: larger amounts count as this one. It is far above
// any budget, and sums of two do not overflow.
const Most = 1 << 61

// Amounts returns amounts as they are counted, between 0 and [Most].
func Amounts(of map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(of))
	for unit, n := range of {
		out[unit] = min(max(n, 0), Most)
	}
	return out
}

// Ledger is what the creatures of a graph have used, by unit. The zero value is ready for
// use.
type Ledger struct {
	// Stops is what the stop_when blocks of recipes have counted.
	Stops stopping.Ledger
	used  map[Key]map[string]Counters
	total map[string]map[string]int64 // by capability and unit
	// unread are counters that a store has and that cannot be read, as it has them. They stay
	// in the store. Budgets that they belong to count as used up.
	unread map[Key]string
}

// metaKey is the key under which a store keeps the counters.
func (k Key) metaKey() string {
	return storemeta.UsedPrefix + string(k.Creature) + " " + k.Capability
}

// Read takes the counters from the metadata of a store and returns the rest, which is meta
// itself if there are none.
func (l *Ledger) Read(meta map[string]string) map[string]string {
	rest, cloned := meta, false
	for name, value := range meta {
		text, ok := strings.CutPrefix(name, storemeta.UsedPrefix)
		stops := !ok && l.Stops.Read(name, value)
		if !ok && !stops {
			continue
		}
		if !cloned {
			rest, cloned = maps.Clone(meta), true
		}
		delete(rest, name)
		if stops {
			continue
		}
		creature, capability, _ := strings.Cut(text, " ")
		k := Key{capability, journal.CreatureID(creature)}
		if units, ok := parsed(value); ok {
			l.put(k, units)
		} else {
			l.cannotRead(k, value)
		}
	}
	return rest
}

// parsed reads counters.
func parsed(value string) (units map[string]Counters, ok bool) {
	if json.Unmarshal([]byte(value), &units) != nil || units == nil {
		return nil, false
	}
	for _, c := range units {
		if c.Returned < 0 || c.Returned > c.Charged || c.Charged > Most {
			return nil, false
		}
	}
	return units, true
}

func (l *Ledger) cannotRead(k Key, value string) {
	if l.unread == nil {
		l.unread = map[Key]string{}
	}
	l.unread[k] = value
}

// Meta is the metadata of a graph as a store of it has it.
func (l *Ledger) Meta(meta map[string]string) map[string]string {
	if len(l.used) == 0 && len(l.unread) == 0 && l.Stops.Empty() {
		return meta
	}
	rec := journal.Record{Meta: maps.Clone(meta)}
	l.Write(&rec)
	return rec.Meta
}

// Write adds all counters to the first record of a store.
func (l *Ledger) Write(rec *journal.Record) {
	for k, units := range l.used {
		rec.PutMeta(k.metaKey(), string(journal.JSON(units)))
	}
	for k, value := range l.unread {
		rec.PutMeta(k.metaKey(), value)
	}
	l.Stops.Write(rec)
}

// put replaces the counters of a key.
func (l *Ledger) put(k Key, units map[string]Counters) {
	if l.used == nil {
		l.used, l.total = map[Key]map[string]Counters{}, map[string]map[string]int64{}
	}
	total := l.total[k.Capability]
	if total == nil {
		total = map[string]int64{}
		l.total[k.Capability] = total
	}
	for unit, c := range l.used[k] {
		total[unit] -= c.Charged - c.Returned
	}
	for unit, c := range units {
		total[unit] = min(total[unit]+c.Charged-c.Returned, 2*Most)
	}
	l.used[k] = units
}

// Inherit adds the ledger of a graph that this one continues.
func (l *Ledger) Inherit(from Ledger) {
	for k, units := range from.used {
		merged := maps.Clone(units)
		for unit, c := range l.used[k] {
			m := merged[unit]
			merged[unit] = Counters{max(m.Charged, c.Charged), max(m.Returned, c.Returned)}
		}
		l.put(k, merged)
	}
	for k, value := range from.unread {
		l.cannotRead(k, value)
	}
	l.Stops.Inherit(&from.Stops)
}

// Used is what a creature has used, by unit.
func (l *Ledger) Used(k Key) map[string]int64 {
	out := map[string]int64{}
	for unit, c := range l.used[k] {
		out[unit] = c.Charged - c.Returned
	}
	return out
}

// Graph is what all creatures have used of a capability, by unit.
func (l *Ledger) Graph(capability string) map[string]int64 { return maps.Clone(l.total[capability]) }

// admit refuses an attempt that does not fit into the budgets.
func (l *Ledger) admit(k Key, budgets []capability.Budget, need map[string]int64) error {
	if err := l.readable(k, budgets); err != nil {
		return err
	}
	own := l.Used(k)
	for _, b := range budgets {
		for _, part := range []struct {
			of           string
			budget, used int64
		}{{"creature", b.Creature, own[b.Unit]}, {"graph", b.Graph, l.total[k.Capability][b.Unit]}} {
			if n := need[b.Unit]; part.budget > 0 && n > part.budget-part.used {
				left := max(0, part.budget-part.used)
				return &abi.Error{
					Code: abi.LimitExceeded, Op: "capability",
					Message: fmt.Sprintf("the budget of the %s for %s is %d %s; %d are left, and the request may use %d", part.of, k.Capability, part.budget, b.Unit, left, n),
					Remedy:  "make a smaller request, or raise the budget in the recipe",
					IDs:     map[string]string{"capability": k.Capability, "creature": string(k.Creature)},
				}
			}
		}
	}
	return nil
}

// readable refuses an attempt under a budget if the session does not show how much was used.
func (l *Ledger) readable(k Key, budgets []capability.Budget) error {
	bounds := func(other Key) bool {
		return slices.ContainsFunc(budgets, func(b capability.Budget) bool { return b.Graph > 0 || b.Creature > 0 && other == k })
	}
	for other := range l.unread {
		if other.Capability == k.Capability && bounds(other) {
			return &abi.Error{
				Code: abi.LimitExceeded, Op: "capability",
				Message: fmt.Sprintf("what the creature %s has used of the budget for %s cannot be read from the session, so the budget counts as used up", other.Creature, k.Capability),
				Remedy:  "to start with a new budget, give the block another name in the recipe; terrarium session verify shows whether the session is damaged",
				IDs:     map[string]string{"capability": k.Capability, "creature": string(other.Creature)},
			}
		}
	}
	return nil
}

// Change adds amounts, which may be negative, if they fit into the budgets, and returns the
// event that reports it. The record, if there is one, gets the counters.
func (l *Ledger) Change(rec *journal.Record, k Key, request journal.EventID, budgets []capability.Budget, change map[string]int64) (ev journal.Event, err error) {
	if err := l.admit(k, budgets, change); err != nil {
		return ev, err
	}
	units := maps.Clone(l.used[k])
	if units == nil {
		units = map[string]Counters{}
	}
	for unit, n := range change {
		c := units[unit]
		if n > 0 {
			c.Charged = min(c.Charged+min(n, Most), Most)
		} else {
			c.Returned = min(c.Returned-max(n, -Most), c.Charged)
		}
		units[unit] = c
	}
	l.put(k, units)
	if _, unread := l.unread[k]; rec != nil && !unread {
		rec.PutMeta(k.metaKey(), string(journal.JSON(units)))
	}
	return journal.Event{
		Kind: journal.EventBudgetChanged, Creature: k.Creature, Cause: request,
		Payload: journal.JSON(journal.BudgetChangedPayload{Capability: k.Capability, Change: change, Creature: l.Used(k), Graph: l.Graph(k.Capability)}),
	}, nil
}

// Difference is what replaces a reservation: what was used in fact, less what was reserved.
// It contains only units that differ.
func Difference(reserved, used map[string]int64) map[string]int64 {
	reserved, used = Amounts(reserved), Amounts(used)
	out := map[string]int64{}
	for _, unit := range slices.Concat(slices.Collect(maps.Keys(reserved)), slices.Collect(maps.Keys(used))) {
		if n := used[unit] - reserved[unit]; n != 0 {
			out[unit] = n
		}
	}
	return out
}
