package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// MoveHint is a move that may be missing in a recipe: something is removed, and something
// like it is created at another address.
type MoveHint struct {
	Deployment string `json:"deployment"`
	From       string `json:"from"` // address of what is removed
	To         string `json:"to"`   // address of what is created
}

// hints pairs what is removed with what is created: creatures of the same module, and
// channels with the same neighbours. A block with for_each counts as a whole, with all its
// keys. If several pairs are possible, there is no hint.
func (c *comparison) hints() []MoveHint {
	gone, new := map[alike][]string{}, map[alike][]string{}
	c.creatureBlocks(c.before, c.after.creatures, gone)
	c.creatureBlocks(c.after, c.before.creatures, new)
	c.channelBlocks(c.before, c.after.channels, gone)
	c.channelBlocks(c.after, c.before.channels, new)
	var out []MoveHint
	for like, from := range gone {
		if to := new[like]; len(from) == 1 && len(to) == 1 && from[0] != to[0] {
			out = append(out, MoveHint{like.deployment, from[0], to[0]})
		}
	}
	slices.SortFunc(out, func(a, b MoveHint) int {
		return cmp.Or(cmp.Compare(a.Deployment, b.Deployment), cmp.Compare(a.From, b.From))
	})
	return out
}

// alike is what a removed and a created block must have in common to be taken for the
// same block.
type alike struct{ deployment, nature string }

// creatureBlocks adds the addresses of the blocks of a side whose creatures are not on the
// other side.
func (c *comparison) creatureBlocks(side *inventory, other map[journal.CreatureID]*journal.CreatureRow, to map[alike][]string) {
	found := map[[2]string][]string{} // the nature of each creature, by deployment and block
	for id, row := range side.creatures {
		if block, key := blockOf(row.Address); row.Deployment != "" && block != "" && other[id] == nil {
			at := [2]string{row.Deployment, block}
			found[at] = append(found[at], fmt.Sprintf("%s %s %s", key, row.Module, row.SHA256))
		}
	}
	collect(found, to)
}

// channelBlocks does the same for channels. Only neighbours that exist on both sides tell
// channels apart.
func (c *comparison) channelBlocks(side *inventory, other map[journal.ChannelID]*journal.ChannelRow, to map[alike][]string) {
	neighbours := map[journal.ChannelID][]string{}
	for id, edges := range side.edges {
		if c.before.creatures[id] == nil || c.after.creatures[id] == nil {
			continue
		}
		for e := range edges {
			neighbours[e.Channel] = append(neighbours[e.Channel], e.Direction.String()+string(id))
		}
	}
	found := map[[2]string][]string{}
	for id, row := range side.channels {
		block, key := blockOf(row.Address)
		if row.Deployment == "" || block == "" || other[id] != nil || len(neighbours[id]) == 0 || strings.HasPrefix(row.Address, journal.DirectPrefix) {
			continue
		}
		slices.Sort(neighbours[id])
		at := [2]string{row.Deployment, block}
		found[at] = append(found[at], "channel "+key+" "+strings.Join(neighbours[id], " "))
	}
	collect(found, to)
}

func collect(found map[[2]string][]string, to map[alike][]string) {
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		slices.Sort(found[at])
		like := alike{at[0], strings.Join(found[at], "\n")}
		to[like] = append(to[like], at[1])
	}
}

// blockOf divides the address of an instance into that of its block and its key.
func blockOf(address string) (block, key string) {
	if !strings.HasSuffix(address, "]") {
		return address, ""
	}
	if at := strings.LastIndex(address, `["`); at > 0 {
		return address[:at], address[at:]
	}
	return address, ""
}
