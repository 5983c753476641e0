package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/diff"
)

// ResumeArgs are the arguments of resume.
type ResumeArgs struct {
	Topology string            `json:"topology,omitempty" doc:"recipe (the default): the recipes determine the graphs; last: changes made while they ran are kept"`
	Vars     map[string]string `json:"vars,omitempty" doc:"values of variables, as on the command line; earlier values are remembered unless they are sensitive"`
	Recipes  map[string]string `json:"recipes,omitempty" doc:"paths of recipes that have moved, by deployment"`
	PlanOnly bool              `json:"plan_only,omitempty" doc:"only return the plan: what would change"`
}

// ResumeResult is the result of resume.
type ResumeResult struct {
	Deployments []ResumedRecord     `json:"deployments"`        // deployments that were resumed
	Restored    []terrarium.GraphID `json:"restored"`           // graphs without a recipe
	Problems    []*ErrorRecord      `json:"problems,omitempty"` // stores that cannot be read, and creatures that stay stopped
	Outside     []diff.OutsidePlan  `json:"outside,omitempty"`  // what has become reachable outside, and the requests that were open before anything ran
	Plan        *PlanRecord         `json:"plan,omitempty"`     // with plan_only
}

// ResumedRecord is a deployment that has been resumed.
type ResumedRecord struct {
	Deployment string `json:"deployment"` // its name
	Recipe     string `json:"recipe"`     // path of its recipe
	Copied     bool   `json:"copied"`     // the recipe's file is missing, so the copy in the session was used
	ApplyResult
}

// PlanRecord is what applying recipes would change.
type PlanRecord struct {
	Empty bool `json:"empty"` // nothing would change, except perhaps values listed under unknown
	// policies, predicates, species and other declarations that are neither creatures nor channels
	Declared  []diff.DeclarationPlan `json:"declared"`
	Creatures []diff.CreaturePlan    `json:"creatures"`          // changes of creatures
	Channels  []diff.ChannelPlan     `json:"channels"`           // changes of channels
	Graphs    []diff.GraphPlan       `json:"graphs"`             // graphs that merge, split, begin or end
	Stops     []diff.StopPlan        `json:"stops,omitempty"`    // recipes that stop, stay stopped or continue, because of their stop_when blocks
	Outside   []diff.OutsidePlan     `json:"outside,omitempty"`  // what becomes reachable outside, and open requests
	Hints     []diff.MoveHint        `json:"hints,omitempty"`    // moved blocks that may be missing: something is removed, and something like it is created
	Problems  []*ErrorRecord         `json:"problems,omitempty"` // stores that cannot be read, and creatures that will stay stopped
}

// NewPlanRecord returns the JSON form of a plan.
func NewPlanRecord(p *diff.Plan) *PlanRecord {
	return &PlanRecord{Empty: p.Empty(), Declared: p.Declared, Creatures: p.Creatures, Channels: p.Channels, Graphs: p.Graphs, Stops: p.Stops, Outside: p.Outside, Hints: p.Hints, Problems: errorRecords(p.Problems)}
}

func resumeOperations() []Operation {
	return []Operation{
		read("resume", "Resumes the deployments in the session directory by applying their recipes again. "+
			"An engine only uses the directory with which it was started; `terrarium resume FILE` creates a directory from an exported file.", resume).needs(Admin),
	}
}

func resume(ctx context.Context, s *client, a *ResumeArgs) (*ResumeResult, error) {
	o := terrarium.ResumeOptions{RecipeOptions: terrarium.RecipeOptions{Vars: a.Vars}, Recipes: a.Recipes, Outside: true}
	switch a.Topology {
	case "", "recipe":
	case "last":
		o.Last = true
	default:
		return nil, invalid("resume", "the field \"topology\" is neither recipe nor last", "use one of them")
	}
	out := &ResumeResult{Deployments: []ResumedRecord{}, Restored: []terrarium.GraphID{}}
	if a.PlanOnly {
		plan, err := s.t.PlanResume(ctx, o)
		if err != nil {
			return nil, err
		}
		out.Plan = NewPlanRecord(plan)
		return out, nil
	}
	resumed, err := s.t.Resume(ctx, o)
	if err != nil {
		return nil, err
	}
	applied := resumed.Applied
	for i := range resumed.Recipes {
		if f := &resumed.Recipes[i]; f.Recipe != nil {
			out.Deployments = append(out.Deployments, ResumedRecord{f.Name, f.Path, f.Copied, *NewApplyResult(applied[0])})
			applied = applied[1:]
		}
	}
	out.Restored = append(out.Restored, resumed.Restored...)
	out.Problems, out.Outside = errorRecords(resumed.Problems), resumed.Outside
	return out, nil
}
