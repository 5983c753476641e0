package operations

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// PoliciesArgs are the arguments of policies.
type PoliciesArgs struct {
	Graphs []string `json:"graphs,omitempty" doc:"only of these graphs, each by any id it has had or the name of a member"`
}

// PoliciesResult is the result of policies.
type PoliciesResult struct {
	Policies []PolicyRecord `json:"policies"` // by deployment, in the order in which they judge
}

// PolicyRecord is the JSON form of a policy.
type PolicyRecord struct {
	Name       string              `json:"name"`
	Deployment string              `json:"deployment"`          // its deployment, whose members it judges
	Recipe     string              `json:"recipe,omitempty"`    // path of the recipe
	Where      string              `json:"where,omitempty"`     // file and line of its script
	Hash       string              `json:"hash"`                // SHA-256 of the script
	Event      journal.PolicyKind  `json:"event"`               // kind of the events that it judges
	Mode       string              `json:"mode"`                // `validate`, or `mutate` if it may change what it judges
	Enforce    string              `json:"enforce"`             // `deny`, or `audit` if its verdicts are only recorded
	OnError    string              `json:"on_error"`            // what its failure means: `deny`, `warn` or `allow`
	Channels   []string            `json:"channels,omitempty"`  // addresses of the channels that it judges; absent: all
	Creatures  []string            `json:"creatures,omitempty"` // addresses of the creatures that it is limited to
	Species    []string            `json:"species,omitempty"`   // species that it is limited to
	Isolated   bool                `json:"isolated,omitempty"`  // whether it runs in a process of its own
	Graphs     []terrarium.GraphID `json:"graphs"`              // graphs with members of the deployment
}

func policies(ctx context.Context, s *client, a *PoliciesArgs) (*PoliciesResult, error) {
	only, err := s.graphsNamed(ctx, a.Graphs)
	if err != nil {
		return nil, err
	}
	status, err := s.t.Status("")
	if err != nil {
		return nil, err
	}
	var names []string
	graphs := map[string][]terrarium.GraphID{}
	for i := range status {
		if len(only) > 0 && !slices.Contains(only, status[i].ID) {
			continue
		}
		for k := range status[i].Creatures {
			of := status[i].Creatures[k].Deployment
			if !slices.Contains(graphs[of], status[i].ID) {
				graphs[of] = append(graphs[of], status[i].ID)
			}
			if !slices.Contains(names, of) {
				names = append(names, of)
			}
		}
	}
	out := &PoliciesResult{Policies: []PolicyRecord{}}
	for _, name := range names {
		d := s.t.Deployment(name)
		if d == nil {
			continue
		}
		for _, p := range deploy.ListPolicies(d.Policy) {
			out.Policies = append(out.Policies, PolicyRecord{
				Name: p.Name, Deployment: name, Recipe: d.Source.Path, Where: p.Where, Hash: p.SHA256, Event: p.On, Mode: p.Mode, Enforce: p.Enforce,
				OnError: p.OnError, Channels: p.Channels, Creatures: p.Creatures, Species: p.Species, Isolated: p.Isolated, Graphs: graphs[name],
			})
		}
	}
	return out, nil
}
