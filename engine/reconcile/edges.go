package reconcile

import (
	"cmp"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
)

// addressedEdge identifies an edge by addresses.
type addressedEdge struct {
	creature, channel string
	direction         journal.Direction
}

// wantedEdge is an edge that the deployment declares.
type wantedEdge struct {
	addressedEdge
	alias string
	given bool // added because of the root, not by the recipe
}

// edgesOf lists the edges of the recipe, and those that a root adds: members
// may send on the report channel, and the root listens on every channel of the
// deployment. The default alias is the channel's name in the recipe, even if
// the channel has another name in its graph.
func edgesOf(d *deploy.Deployment) []wantedEdge {
	var out []wantedEdge
	names := map[string]string{}
	for _, ch := range channelSpecsOf(d) {
		names[ch.Address] = ch.Name
	}
	for i := range d.Creatures {
		c := &d.Creatures[i]
		for _, w := range c.Listen {
			out = append(out, wantedEdge{addressedEdge{c.Address, w.Channel, journal.Listen}, cmp.Or(w.Alias, names[w.Channel]), false})
		}
		for _, w := range c.Send {
			out = append(out, wantedEdge{addressedEdge{c.Address, w.Channel, journal.Send}, cmp.Or(w.Alias, names[w.Channel]), false})
		}
	}
	root := d.Root
	if root == "" {
		return out
	}
	there := map[addressedEdge]bool{}
	for i := range out {
		there[out[i].addressedEdge] = true
	}
	give := func(key addressedEdge, alias string) {
		if !there[key] {
			there[key] = true
			out = append(out, wantedEdge{key, alias, true})
		}
	}
	for i := range d.Creatures {
		if c := &d.Creatures[i]; c.Address != root {
			give(addressedEdge{c.Address, draft.ReportAddress, journal.Send}, deploy.ReportChannel)
		}
	}
	for _, ch := range channelSpecsOf(d) {
		give(addressedEdge{root, ch.Address, journal.Listen}, ch.Name)
	}
	return out
}
