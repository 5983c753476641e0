package spending

import (
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/stopping"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The units of budgets that conditions can be about.
const (
	tokens = "tokens"
	money  = "millionths"
)

// Counters are what the conditions of a deployment count.
func (l *Ledger) Counters(deployment string, now int64) journal.StopCounters {
	c := l.Stops.Counters(deployment, now)
	for k, units := range l.used {
		if l.Stops.Counts(k.Creature, deployment) {
			c.Tokens += units[tokens].Charged - units[tokens].Returned
			c.Money += units[money].Charged - units[money].Returned
		}
	}
	return c
}

// Judge is [stopping.Ledger.Judge] or, after the recipe was applied, [stopping.Ledger.Revise]. by
// is the encoded [journal.Attribution] of the change of the graph after which it judges, if any.
func (l *Ledger) Judge(rec *journal.Record, deployment string, rules []deploy.StopWhen, applied bool, now int64, by []byte) (change *stopping.Change) {
	switch {
	case applied:
		change = l.Stops.Revise(rec, deployment, rules, l.Counters(deployment, now), now)
	case len(rules) > 0 && l.Stops.Stopped(deployment) == nil:
		change = l.Stops.Judge(rec, deployment, rules, l.Counters(deployment, now), now)
	}
	if change != nil {
		change.Event.Attribute(by)
	}
	return change
}
