package effects

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/rehearsal"
)

// Rehearsed returns the effects as those of a turn outside of any engine, of the creature
// with that id.
func (o *Own) Rehearsed(id journal.CreatureID) (out rehearsal.Effects) {
	if o.HasOutput {
		out.Output = append([]byte{}, o.Put...)
	}
	for _, w := range o.Writes {
		out.Writes = append(out.Writes, journal.StateRow{Creature: id, Key: w.Key, Value: w.Value, Deleted: w.Deleted})
	}
	for i := range o.Timers {
		out.Timers = append(out.Timers, o.Timers[i].Noted())
	}
	for _, line := range o.Logs {
		out.Logs = append(out.Logs, journal.LogPayload{Level: line.Level.String(), Text: line.Text})
	}
	return out
}
