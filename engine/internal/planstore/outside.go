package planstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Held returns the capabilities that a creature has after a plan, and whether its configuration
// has secrets. It returns false for a creature that is not brought back by the plan.
type Held func(journal.CreatureID) (held map[string]*outbound.Access, hasSecrets, back bool)

// Outside lists what the creatures of the graphs after the plan can reach, and their open
// requests in the saved graphs, which are not running.
func (r *Storage) Outside(ctx context.Context, saved, after []journal.SavedGraph, held Held) ([]diff.OutsidePlan, error) {
	open, existing := map[journal.CreatureID][]journal.OutboundRequest{}, map[journal.CreatureID]bool{}
	for i := range r.graphs {
		for k := range r.graphs[i].Creatures {
			existing[r.graphs[i].Creatures[k].ID] = true
		}
	}
	for i := range saved {
		if err := r.openRequests(ctx, &saved[i], open); err != nil {
			return nil, err
		}
	}
	var out []diff.OutsidePlan
	for i := range after {
		for k := range after[i].Creatures {
			row := &after[i].Creatures[k]
			if access, secret, back := held(row.ID); back {
				id := row.ID
				if !existing[id] {
					id = ""
				}
				out = append(out, outsideOf(diff.OutsidePlan{Deployment: row.Deployment, Address: row.Address, Name: row.Name, Creature: id}, access, open[row.ID], secret)...)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b diff.OutsidePlan) int {
		return cmp.Or(strings.Compare(a.Deployment, b.Deployment), strings.Compare(a.Address, b.Address), strings.Compare(a.Name, b.Name), strings.Compare(a.Capability, b.Capability))
	})
	return out, nil
}

// openRequests adds the requests of a saved graph to capabilities, by creature.
func (r *Storage) openRequests(ctx context.Context, g *journal.SavedGraph, out map[journal.CreatureID][]journal.OutboundRequest) error {
	if r.archive == nil || len(g.Requests) == 0 {
		return nil
	}
	found, err := outbound.Load(ctx, logOf{r.archive, g.Session}, g.Requests)
	if abi.CodeOf(err) == abi.NotFound {
		return nil // it has no file
	}
	if err != nil {
		return err
	}
	for i := range g.Requests {
		if o, ok := found[g.Requests[i].ID]; ok {
			out[g.Requests[i].Creature] = append(out[g.Requests[i].Creature], o)
		}
	}
	return nil
}

// logOf is the log of a session.
type logOf struct {
	archive journal.Archive
	session journal.SessionID
}

func (l logOf) History(ctx context.Context, q journal.HistoryQuery) ([]journal.Event, error) {
	return l.archive.History(ctx, l.session, q)
}

// outsideOf lists what one creature can reach, and its open requests.
func outsideOf(of diff.OutsidePlan, access map[string]*outbound.Access, open []journal.OutboundRequest, hasSecrets bool) []diff.OutsidePlan {
	all := map[string]*diff.OutsidePlan{}
	entry := func(id string) *diff.OutsidePlan {
		if all[id] == nil {
			one := of
			one.Capability, one.Reaches = id, []string{}
			all[id] = &one
		}
		return all[id]
	}
	for id, a := range access {
		if one := entry(id); a.Lacking {
			one.Lacking = true
		} else {
			one.Reaches = a.Allows()
		}
	}
	for i := range open {
		o := &open[i]
		one, a := entry(o.Capability), access[o.Capability]
		q := diff.OpenRequest{ID: o.Key, Becomes: diff.RequestSent}
		switch {
		case a == nil:
			q.Becomes, one.Revoked = diff.RequestDenied, true
		case a.Lacking:
			q.Becomes = diff.RequestWaits
		default:
			q.Request = a.Brief(o, hasSecrets)
		}
		one.Requests = append(one.Requests, q)
	}
	var out []diff.OutsidePlan
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[id])
	}
	return out
}

// Letters fills in what becomes of deliveries to the creatures of a plan, and how many dead
// letters they have. ids are those of its creatures.
func (r *Storage) Letters(ctx context.Context, plan *diff.Plan, ids []journal.CreatureID) error {
	letters, err := r.letters(ctx)
	for i := range plan.Creatures {
		c := &plan.Creatures[i]
		c.Buried, c.Waiting.DeadLetters = r.buried[ids[i]], letters[c.Creature]
	}
	return err
}
