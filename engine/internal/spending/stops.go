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

// Judge is [stopping.Ledger.Judge] or, after the recipe was applied, [stopping.Ledger.Revise].
func (l *Ledger) Judge(rec *journal.Record, deployment string, rules []deploy.StopWhen, applied bool, now int64) *stopping.Change {
	if applied {
		return l.Stops.Revise(rec, deployment, rules, l.Counters(deployment, now), now)
	}
	if len(rules) == 0 || l.Stops.Stopped(deployment) != nil {
		return nil
	}
	return l.Stops.Judge(rec, deployment, rules, l.Counters(deployment, now), now)
}
