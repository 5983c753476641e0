package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/near"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// names translates between ids and names of a session.
type names struct {
	creatures map[journal.CreatureID]string
	channels  map[journal.ChannelID]string
}

func newNames(g journal.SavedGraph) *names {
	n := &names{map[journal.CreatureID]string{}, map[journal.ChannelID]string{}}
	n.add(g)
	return n
}

// readLive adds the names in the live sessions of a list.
func (n *names) readLive(ctx context.Context, v *sqlitestore.View, list []journal.SessionInfo) error {
	for _, i := range liveSessions(list) {
		if err := n.read(ctx, v, i.Session); err != nil {
			return err
		}
	}
	return nil
}

// read adds the names in a session. A session that has been cut may have none left.
func (n *names) read(ctx context.Context, v *sqlitestore.View, session journal.SessionID) error {
	saved, err := v.Saved(ctx, session)
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		return err
	}
	n.add(saved)
	return nil
}

func (n *names) add(g journal.SavedGraph) {
	for _, c := range g.Creatures {
		n.creatures[c.ID] = c.Name
	}
	for _, ch := range g.Channels {
		n.channels[ch.ID] = ch.Name
		if ch.Inbox != "" {
			n.channels[ch.ID] = "inbox of " + n.ofCreature(ch.Inbox)
		}
	}
}

// learn notes the creature's name from an event. The creature may have been removed
// since.
func (n *names) learn(ev *journal.Event) {
	if ev.Kind != journal.EventCreatureStarted && ev.Kind != journal.EventCreatureStopped || n.creatures[ev.Creature] != "" {
		return
	}
	var payload journal.CreatureStartedPayload // both kinds contain the name
	if err := json.Unmarshal(ev.Payload, &payload); err == nil && payload.Name != "" {
		n.creatures[ev.Creature] = payload.Name
	}
}

func (n *names) ofCreature(id journal.CreatureID) string { return named(n.creatures, id) }
func (n *names) ofChannel(id journal.ChannelID) string   { return named(n.channels, id) }

func named[T ~string](m map[T]string, id T) string {
	if name := m[id]; name != "" {
		return name
	}
	return string(id)
}

// creature finds an id by name. A text that is not a name is taken for an id, because
// removed creatures no longer have a name.
func (n *names) creature(name string) (journal.CreatureID, error) {
	return lookUp("--creature", n.creatures, name)
}

func lookUp[T ~string](flag string, m map[T]string, name string) (T, error) {
	var found []string
	var id T
	for k, v := range m {
		if v == name && name != "" {
			found, id = append(found, string(k)), k
		}
	}
	switch len(found) {
	case 0:
		return T(name), nil
	case 1:
		return id, nil
	}
	return "", usage("%s %s: several have this name; use an id instead: %s", flag, name, strings.Join(found, ", "))
}

// tellNone notes on standard error that nothing matches the filters of a command. A name that
// is unknown is not an error, because it may have been that of something removed since.
func (n *names) tellNone(s streams, what string, creatures, channels []string) error {
	notes := []string{"No " + what + " matches the filters."}
	for _, name := range creatures {
		notes = append(notes, unknownName("creature", n.creatures, name))
	}
	for _, name := range channels {
		notes = append(notes, unknownName("channel", n.channels, name))
	}
	notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	_, err := fmt.Fprintln(s.err, printable(strings.Join(notes, " ")))
	return failWith(exitFailed, err)
}

// unknownName tells that nothing has a name, and which names are similar; "" if something
// has it.
func unknownName[T ~string](kind string, known map[T]string, name string) string {
	if _, id := known[T(name)]; id {
		return ""
	}
	best, distance := "", max(2, len(name)/3)+1
	for _, has := range slices.Sorted(maps.Values(known)) {
		if has == name {
			return ""
		}
		if d := near.Distance(name, has); d < distance && d < len(has) {
			best, distance = has, d
		}
	}
	note := fmt.Sprintf("There is no %s %s; session show lists those that exist.", kind, name)
	if best != "" {
		note = fmt.Sprintf("There is no %s %s: did you mean %s?", kind, name, best)
	}
	return note
}
