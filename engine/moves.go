package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// checkMoves refuses a recipe whose moves lead two creatures or channels that exist to one
// address: only one could keep its state.
func (a *application) checkMoves() error {
	if len(a.d.Moved) == 0 {
		return nil
	}
	at := map[string]string{} // what exists, by the address that it has now
	for _, address := range slices.Sorted(maps.Keys(a.existing())) {
		now := a.d.NowAt(address)
		other, taken := at[now]
		if at[now] = address; !taken {
			continue
		}
		from, with := address, other
		if from == now {
			from, with = other, address
		}
		return &abi.Error{
			Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s cannot move to %s: %s would be there too, and only one of them can be", from, now, with),
			Remedy: "let a moved block lead each of them to an address of its own, or remove the block; what no block moves is removed",
			IDs:    map[string]string{"deployment": a.d.Name, "address": from, "other": with},
		}
	}
	return nil
}

// existing returns the addresses of the creatures and channels of the deployment that run
// or are saved.
func (a *application) existing() map[string]bool {
	out := map[string]bool{}
	note := func(deployment, address string) {
		if deployment == a.d.Name && address != "" {
			out[address] = true
		}
	}
	for _, c := range a.e.creatures {
		note(c.deployment, c.spec.Address)
	}
	for _, ch := range a.e.channels {
		note(ch.deployment, ch.place().address)
	}
	for _, g := range a.e.savedWith(a.d.Name) {
		for i := range g.Creatures {
			note(g.Creatures[i].Deployment, g.Creatures[i].Address)
		}
		for i := range g.Channels {
			note(g.Channels[i].Deployment, g.Channels[i].Address)
		}
	}
	return out
}
