package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// DeclarationPlan is the planned change of one declaration.
type DeclarationPlan struct {
	Deployment string       `json:"deployment,omitempty"`
	Address    string       `json:"address"`
	Action     PlanAction   `json:"action"`
	Changes    []PlanChange `json:"changes,omitempty"` // its changes; in each, `what` is the attribute
	// Attributes whose previous values are not stored: the sensitive ones or, for
	// a session that an earlier version applied, all.
	Unknown []string `json:"unknown,omitempty"`
}

// idle reports whether the declaration is unchanged.
func (d *DeclarationPlan) idle() bool { return d.Action == PlanResume && len(d.Changes) == 0 }

// CompareDeclared compares the declarations of deployments with those before.
// existing lists the existing deployments.
func CompareDeclared(before map[string][]deploy.Declaration, existing map[string]bool, deployments []*deploy.Deployment) []DeclarationPlan {
	out := []DeclarationPlan{}
	for _, d := range deployments {
		was, known := before[d.Name]
		were, are := byAddress(was, d.NowAt), byAddress(d.Declared, nil)
		for _, address := range slices.SortedFunc(maps.Keys(joined(were, are)), policiesFirst) {
			p := DeclarationPlan{Deployment: d.Name, Address: address, Action: PlanResume}
			a, there := were[address]
			b, stays := are[address]
			switch {
			case !there && existing[d.Name] && !known:
				p.Unknown = slices.Sorted(maps.Keys(b.Settings))
			case ofMember(address):
				p.compareMember(a, b)
			case !stays:
				p.Action = PlanRemove
			case !there:
				p.Action = PlanCreate
				if ofConnector(address) {
					p.compare(nil, b.Settings) // what it reaches outside
				}
			default:
				p.compare(a.Settings, b.Settings)
			}
			out = append(out, p)
		}
	}
	return out
}

// byAddress returns declarations by the addresses that they have now.
func byAddress(list []deploy.Declaration, now func(string) string) map[string]*deploy.Declaration {
	out := make(map[string]*deploy.Declaration, len(list))
	for i := range list {
		address := list[i].Address
		if now != nil {
			address = now(address)
		}
		out[address] = &list[i]
	}
	return out
}

// policiesFirst orders addresses: policies come before the things they guard.
func policiesFirst(a, b string) int {
	return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a, b))
}

func rankOf(address string) int {
	if isPolicy(address) {
		return 0
	}
	return 1
}

// compare finds the differences. A sensitive value can be compared only if the
// previous value is known, from a running deployment.
func (p *DeclarationPlan) compare(before, after map[string]deploy.DeclaredValue) {
	for _, name := range slices.Sorted(maps.Keys(joined(before, after))) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case had && has && was.Sensitive && is.Sensitive && was.Value == "":
			p.Unknown = append(p.Unknown, name)
		case had != has || was != is:
			p.Changes = append(p.Changes, PlanChange{What: name, Before: was.Text, After: is.Text})
		}
	}
}

// compareMember compares the declared settings of a creature, a channel or a wire, which
// exists even if none of these settings is declared.
func (p *DeclarationPlan) compareMember(before, after *deploy.Declaration) {
	var was, is map[string]deploy.DeclaredValue
	if before != nil {
		was = before.Settings
	}
	if after != nil {
		is = after.Settings
	}
	p.compare(was, is)
}

// ofMember reports whether an address belongs to a creature, a channel or a wire, possibly
// in a sub-recipe.
func ofMember(address string) bool {
	for _, kind := range []string{"creature.", "channel."} {
		if strings.HasPrefix(address, kind) || strings.HasPrefix(address, "recipe.") && strings.Contains(address, "."+kind) {
			return true
		}
	}
	return false
}

// ofConnector reports whether an address belongs to a source or a sink, possibly in a
// sub-recipe.
func ofConnector(address string) bool {
	return slices.ContainsFunc([]string{"source.", "sink."}, func(kind string) bool {
		return strings.HasPrefix(address, kind) || strings.HasPrefix(address, "recipe.") && strings.Contains(address, "."+kind)
	})
}

// isPolicy reports whether an address belongs to a policy, possibly in a
// sub-recipe.
func isPolicy(address string) bool {
	return strings.HasPrefix(address, "policy.") || strings.HasPrefix(address, "recipe.") && strings.Contains(address, ".policy.")
}
