// Package stopping counts what the stop_when blocks of recipes are about, for each graph, and
// judges them.
//
// Each creature of a recipe has counters that only rise, and only in the graph that has the
// creature. So the greater of two values is the later one, and a ledger that continues others
// takes the greater value of each: graphs that were split and merge again count every turn
// once. A graph that was split off keeps what the whole had counted until then. Creatures that
// were removed stay in the ledger.
package stopping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Rules are the conditions of the applied deployments. The zero value has none. Readers take
// no lock: one look at it is all that a turn costs if no recipe has conditions.
type Rules struct {
	p atomic.Pointer[map[string][]deploy.StopWhen]
}

// Any reports whether any deployment has conditions.
func (r *Rules) Any() bool { return r.p.Load() != nil }

// Of are the conditions of a deployment.
func (r *Rules) Of(deployment string) []deploy.StopWhen {
	if m := r.p.Load(); m != nil {
		return (*m)[deployment]
	}
	return nil
}

// Put replaces the conditions of a deployment and returns the former ones. Only one goroutine
// at a time may call it.
func (r *Rules) Put(deployment string, list []deploy.StopWhen) (former []deploy.StopWhen) {
	next := map[string][]deploy.StopWhen{}
	if m := r.p.Load(); m != nil {
		next, former = maps.Clone(*m), (*m)[deployment]
	}
	if next[deployment] = list; len(list) == 0 {
		delete(next, deployment)
	}
	if len(next) == 0 {
		r.p.Store(nil)
		return former
	}
	r.p.Store(&next)
	return former
}

// counters are those of one creature.
type counters struct {
	Deployment string `json:"deployment"`
	Turns      int64  `json:"turns"`
	Messages   int64  `json:"messages"`
}

// place is a deployment in a graph.
type place = journal.RecipePlace

// Ledger has the counters of one graph. The zero value is ready for use.
type Ledger struct {
	creatures map[journal.CreatureID]counters
	places    map[string]place
	total     map[string]counters // of its creatures, by deployment
	stopped   bool                // any place is
}

// The keys under which a store keeps the counters of creatures and the places.
const (
	creatureKey = storemeta.StopPrefix + "creature "
	placeKey    = journal.MetaRecipePlace // which begins like that
)

// Read takes the entry of a store's metadata, if it is one of a ledger. What cannot be read
// counts as nothing.
func (l *Ledger) Read(key, value string) (taken bool) {
	if id, ok := strings.CutPrefix(key, creatureKey); ok {
		var c counters
		if json.Unmarshal([]byte(value), &c) == nil {
			l.put(journal.CreatureID(id), c)
		}
		return true
	}
	name, ok := strings.CutPrefix(key, placeKey)
	if ok {
		var p place
		if json.Unmarshal([]byte(value), &p) == nil {
			l.putPlace(name, p)
		}
	}
	return ok
}

// Empty reports whether nothing was counted.
func (l *Ledger) Empty() bool { return len(l.creatures)+len(l.places) == 0 }

// Write adds everything to the first record of a store.
func (l *Ledger) Write(rec *journal.Record) {
	for id := range l.creatures {
		l.writeCreature(rec, id, l.creatures[id])
	}
	for name := range l.places {
		l.writePlace(rec, name)
	}
}

func (l *Ledger) writeCreature(rec *journal.Record, id journal.CreatureID, c counters) {
	if rec != nil {
		rec.PutMeta(creatureKey+string(id), string(journal.JSON(c)))
	}
}

func (l *Ledger) writePlace(rec *journal.Record, name string) {
	if rec != nil {
		rec.PutMeta(placeKey+name, string(journal.JSON(l.places[name])))
	}
}

// Inherit adds the ledger of a graph that this one continues. If the recipe has stopped in one
// of them, it has stopped in both.
func (l *Ledger) Inherit(from *Ledger) {
	for id, c := range from.creatures {
		own := l.creatures[id]
		c.Turns, c.Messages = max(c.Turns, own.Turns), max(c.Messages, own.Messages)
		l.put(id, c)
	}
	for name, p := range from.places {
		if own, ok := l.places[name]; ok {
			p.Began = min(p.Began, own.Began)
			if p.Stopped == nil || own.Stopped != nil && own.Stopped.Time < p.Stopped.Time {
				p.Stopped = own.Stopped
			}
		}
		l.putPlace(name, p)
	}
}

// put replaces the counters of a creature.
func (l *Ledger) put(id journal.CreatureID, c counters) {
	if l.creatures == nil {
		l.creatures, l.total = map[journal.CreatureID]counters{}, map[string]counters{}
	}
	if was, ok := l.creatures[id]; ok {
		l.add(was.Deployment, -was.Turns, -was.Messages)
	}
	l.add(c.Deployment, c.Turns, c.Messages)
	l.creatures[id] = c
}

func (l *Ledger) add(deployment string, turns, messages int64) {
	t := l.total[deployment]
	t.Turns, t.Messages = t.Turns+turns, t.Messages+messages
	l.total[deployment] = t
}

func (l *Ledger) putPlace(name string, p place) {
	if l.places == nil {
		l.places = map[string]place{}
	}
	l.places[name] = p
	l.stopped = false
	for _, p := range l.places {
		l.stopped = l.stopped || p.Stopped != nil
	}
}

// Begin notes that a recipe with conditions is in the graph. It returns false if that is known.
func (l *Ledger) Begin(rec *journal.Record, deployment string, now int64) bool {
	if _, known := l.places[deployment]; known {
		return false
	}
	l.putPlace(deployment, place{Began: now})
	l.writePlace(rec, deployment)
	return true
}

// Counts reports whether the creature belongs to the deployment, as far as its counters say.
func (l *Ledger) Counts(id journal.CreatureID, deployment string) bool {
	c, ok := l.creatures[id]
	return ok && c.Deployment == deployment
}

// Know makes a creature known that has not been counted yet.
func (l *Ledger) Know(rec *journal.Record, id journal.CreatureID, deployment string) {
	if !l.Counts(id, deployment) {
		c := l.creatures[id]
		c.Deployment = deployment
		l.put(id, c)
		l.writeCreature(rec, id, c)
	}
}

// Turn counts a turn of a creature, which has sent some messages.
func (l *Ledger) Turn(rec *journal.Record, id journal.CreatureID, deployment string, messages uint64) {
	c := l.after(id, deployment, messages)
	l.put(id, c)
	l.writeCreature(rec, id, c)
}

// Foresee writes what Turn will count, without counting it yet.
func (l *Ledger) Foresee(rec *journal.Record, id journal.CreatureID, deployment string, messages uint64) {
	l.writeCreature(rec, id, l.after(id, deployment, messages))
}

func (l *Ledger) after(id journal.CreatureID, deployment string, messages uint64) counters {
	c := l.creatures[id]
	return counters{deployment, c.Turns + 1, c.Messages + int64(messages)}
}

// Stopped says why a deployment has stopped; nil if it has not.
func (l *Ledger) Stopped(deployment string) *journal.RecipeStop {
	if !l.stopped {
		return nil
	}
	return l.places[deployment].Stopped
}

// NotRunning is the error for what needs a creature to run, if it does not: because of stop or,
// without one, because of its own condition.
func NotRunning(id journal.CreatureID, name, condition string, stop *journal.RecipeStop) *abi.Error {
	if stop == nil {
		return errtext.NotRunning(string(id), name, condition)
	}
	return errtext.RecipeStopped("tool", string(id), name, stop.Deployment, stop.Condition, stop.Reason)
}

// All are the deployments that have stopped, by name, of those that have members.
func (l *Ledger) All(members map[string]bool) (out []journal.RecipeStop) {
	for _, name := range slices.Sorted(maps.Keys(l.places)) {
		if s := l.places[name].Stopped; s != nil && members[name] {
			out = append(out, *s)
		}
	}
	return out
}

// Has reports whether a deployment with conditions is or was in the graph.
func (l *Ledger) Has(deployment string) bool {
	_, ok := l.places[deployment]
	return ok
}

// Places are the deployments with conditions that are or were in the graph.
func (l *Ledger) Places() []string { return slices.Sorted(maps.Keys(l.places)) }

// Counters returns the counters of a deployment, except for its use of language models.
func (l *Ledger) Counters(deployment string, now int64) journal.StopCounters {
	t := l.total[deployment]
	return journal.StopCounters{Turns: t.Turns, Messages: t.Messages, Elapsed: max(0, now-l.places[deployment].Began)}
}

// NextDue is when the time of a condition comes next, after now; 0 if there is none.
func (l *Ledger) NextDue(rules *Rules, now int64) (due int64) {
	for name, p := range l.places {
		for _, w := range rules.Of(name) {
			at := p.Began + int64(w.After)
			if p.Stopped == nil && w.After > 0 && at > now && (due == 0 || at < due) {
				due = at
			}
		}
	}
	return due
}

// Change says that a deployment has stopped, or continues, in the form of an event.
type Change struct {
	Event   journal.Event
	Stopped bool
}

// Judge makes a deployment stop if one of its conditions holds. If it has stopped already, it
// stays so. It returns nil if nothing changes.
func (l *Ledger) Judge(rec *journal.Record, deployment string, rules []deploy.StopWhen, c journal.StopCounters, now int64) *Change {
	if l.Stopped(deployment) != nil {
		return nil
	}
	s := holding(rules, c)
	if s == nil {
		return nil
	}
	s.Deployment, s.Time, s.Counters = deployment, now, c
	return l.stop(rec, s)
}

// Revise judges a deployment again after its recipe was applied: it also continues if no
// condition holds any longer.
func (l *Ledger) Revise(rec *journal.Record, deployment string, rules []deploy.StopWhen, c journal.StopCounters, now int64) *Change {
	was := l.Stopped(deployment)
	if was == nil {
		return l.Judge(rec, deployment, rules, c, now)
	}
	s := holding(rules, c)
	switch {
	case s == nil:
		l.putPlace(deployment, place{Began: l.places[deployment].Began})
		l.writePlace(rec, deployment)
		return &Change{Event: journal.Event{Kind: journal.EventRecipeContinued, Payload: journal.JSON(journal.RecipeContinuedPayload{Deployment: deployment, Condition: was.Condition})}}
	case s.Condition == was.Condition:
		l.reword(rec, *was, rules, s.Reason, c)
		return nil
	}
	s.Deployment, s.Time, s.Counters = deployment, now, c
	return l.stop(rec, s)
}

// reword gives a stop whose condition still holds, after counters c, the reason that the block has
// now: from the counters of the stop if it would have held for them. This is not another stop.
func (l *Ledger) reword(rec *journal.Record, s journal.RecipeStop, rules []deploy.StopWhen, reason string, c journal.StopCounters) {
	if then := holding(rules, s.Counters); then != nil && then.Condition == s.Condition {
		reason, c = then.Reason, s.Counters
	}
	if reason != s.Reason {
		s.Reason, s.Counters = reason, c
		l.putPlace(s.Deployment, place{Began: l.places[s.Deployment].Began, Stopped: &s})
		l.writePlace(rec, s.Deployment)
	}
}

func (l *Ledger) stop(rec *journal.Record, s *journal.RecipeStop) *Change {
	l.putPlace(s.Deployment, place{Began: l.places[s.Deployment].Began, Stopped: s})
	l.writePlace(rec, s.Deployment)
	return &Change{Event: journal.Event{Kind: journal.EventRecipeStopped, Payload: journal.JSON(s)}, Stopped: true}
}

// holding returns the first condition that holds, or nil.
func holding(rules []deploy.StopWhen, c journal.StopCounters) *journal.RecipeStop {
	for i := range rules {
		if reason, ok := holds(&rules[i], c); ok {
			return &journal.RecipeStop{Condition: "stop_when." + rules[i].Name, Reason: reason}
		}
	}
	return nil
}

// holds reports whether all that a condition sets holds, and what that is, in words.
func holds(w *deploy.StopWhen, c journal.StopCounters) (reason string, ok bool) {
	var parts []string
	for _, limit := range []struct {
		what      string
		value, at int64
	}{{"turns", c.Turns, w.Turns}, {"messages", c.Messages, w.Messages}, {"tokens", c.Tokens, w.Tokens}} {
		if limit.value < limit.at {
			return "", false
		}
		if limit.at > 0 {
			parts = append(parts, fmt.Sprintf("%s %d of %d", limit.what, limit.value, limit.at))
		}
	}
	if c.Money < w.Money || c.Elapsed < int64(w.After) {
		return "", false
	}
	if w.Money > 0 {
		parts = append(parts, "money "+capability.FormatMoney(c.Money)+" of "+capability.FormatMoney(w.Money))
	}
	if w.After > 0 {
		parts = append(parts, fmt.Sprintf("%v after it began", w.After))
	}
	if w.Match == nil {
		return strings.Join(parts, ", "), true
	}
	ok, err := w.Match(&c)
	switch {
	case err != nil: // as for policies, a condition that fails decides for less work
		return strings.Join(append(parts, "its match fails: "+err.Error()), ", "), true
	case !ok:
		return "", false
	}
	parts = append(parts, fmt.Sprintf("its match is true after turns %d, messages %d, tokens %d, money %s, elapsed %v",
		c.Turns, c.Messages, c.Tokens, capability.FormatMoney(c.Money), time.Duration(c.Elapsed).Round(time.Millisecond)))
	return strings.Join(parts, ", "), true
}
