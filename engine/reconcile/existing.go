package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// CheckMoves refuses a recipe whose moves lead two creatures or channels that
// exist to one address: only one could keep its state. It comes before saved
// graphs are resumed.
func CheckMoves(d *deploy.Deployment, base Base, saved []journal.SavedGraph) error {
	if len(d.Moved) == 0 {
		return nil
	}
	at := map[string]string{} // what exists, by the address that it has now
	for _, address := range slices.Sorted(maps.Keys(existing(d.Name, base, saved))) {
		now := d.NowAt(address)
		other, taken := at[now]
		if at[now] = address; !taken {
			continue
		}
		from, with := address, other
		if from == now {
			from, with = other, address
		}
		return &abi.Error{
			Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s cannot move to %s: %s would have the same address", from, now, with),
			Remedy: "give each of them an address of its own with a moved block, or remove the block; a creature or channel that no block moves is removed",
			IDs:    map[string]string{"deployment": d.Name, "address": from, "other": with},
		}
	}
	return nil
}

// existing returns the addresses of the creatures and channels of a deployment
// that run or are saved.
func existing(deployment string, base Base, saved []journal.SavedGraph) map[string]bool {
	out := map[string]bool{}
	note := func(of, address string) {
		if of == deployment && address != "" {
			out[address] = true
		}
	}
	for m := range base.Members {
		note(m.Deployment, m.Spec.Address)
	}
	for ch := range base.Channels {
		note(ch.Deployment, ch.Address)
	}
	for i := range saved {
		for _, c := range saved[i].Creatures {
			note(c.Deployment, c.Address)
		}
		for _, ch := range saved[i].Channels {
			note(ch.Deployment, ch.Address)
		}
	}
	return out
}

// checkProtected refuses to remove what was declared with prevent_destroy when
// the deployment was last applied.
func (r *Reconciliation) checkProtected(declared []deploy.Declaration) error {
	protected := map[string]bool{}
	for i := range declared {
		if _, ok := declared[i].Settings[deploy.PreventDestroy]; ok {
			protected[r.d.NowAt(declared[i].Address)] = true
		}
	}
	var found []string
	for _, removed := range r.Removed {
		if protected[r.d.NowAt(removed.Address)] {
			found = append(found, removed.Address)
		}
	}
	if len(found) == 0 {
		return nil
	}
	more := ""
	if n := len(found) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more that %s protected)", n, map[bool]string{true: "is", false: "are"}[n == 1])
	}
	return &abi.Error{
		Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s would be removed%s, but it was declared with %s = true", found[0], more, deploy.PreventDestroy),
		Remedy: fmt.Sprintf("declare it again, or name its new address in a moved block; to remove it, first apply the recipe with %s = false", deploy.PreventDestroy),
		IDs:    map[string]string{"deployment": r.d.Name, "address": found[0]},
	}
}

// CheckSource refuses a recipe if another one is applied as a deployment of the same name,
// which is most likely a mistake.
func CheckSource(d, applied *deploy.Deployment) error {
	was, is := applied.Source.Path, d.Source.Path
	if was == is || was == "" || is == "" {
		return nil
	}
	return &abi.Error{
		Code: abi.AlreadyExists, Op: "apply", Message: "another recipe is applied as the deployment " + d.Name,
		Remedy: "give one of them another name in its terrarium block",
		IDs:    map[string]string{"deployment": d.Name, "path": was, "other": is},
	}
}

// CheckTwins refuses to resume a deployment that is saved twice. That happens when a
// store that could not be read becomes readable, and the deployment has started over
// in the meantime.
func CheckTwins(deployment string, saved []journal.SavedGraph) error {
	home := map[string]*journal.SavedGraph{}
	for i := range saved {
		g := &saved[i]
		for _, c := range g.Creatures {
			other := home[c.Address]
			if c.Deployment != deployment || c.Address == "" {
				continue
			}
			if home[c.Address] = g; other != nil {
				return &abi.Error{
					Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s of the deployment %s is saved twice: in %s and in %s", c.Address, deployment, other.Path, g.Path),
					Remedy: "choose one of the two and use a copy of the session directory without the other, or give the recipe another name",
					IDs:    map[string]string{"deployment": deployment, "path": g.Path, "other": other.Path},
				}
			}
		}
	}
	return nil
}
