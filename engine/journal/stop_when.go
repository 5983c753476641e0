package journal

import "encoding/json"

// StopCounters are the counters for the conditions of a recipe in one graph. They count
// the work of all creatures of the recipe that are or were in the graph, including
// spawned and removed ones.
type StopCounters struct {
	Turns    int64 `json:"turns"`            // committed turns
	Messages int64 `json:"messages"`         // messages that creatures have sent, requests and outputs over wires included
	Tokens   int64 `json:"tokens,omitempty"` // tokens of language models that were used
	Money    int64 `json:"money,omitempty"`  // money used for language models, in millionths
	Elapsed  int64 `json:"elapsed"`          // nanoseconds since the recipe began
}

// RecipeStop says why the creatures of a recipe in a graph do not run.
type RecipeStop struct {
	Deployment string       `json:"deployment"` // deployment of the recipe
	Condition  string       `json:"condition"`  // address of the block, such as stop_when.enough
	Reason     string       `json:"reason"`     // what was reached, in words
	Time       int64        `json:"time"`       // when it was reached, in nanoseconds since 1970
	Counters   StopCounters `json:"counters"`   // values of the counters at that time
}

// RecipeStoppedPayload is the payload of recipe_stopped.
type RecipeStoppedPayload struct {
	RecipeStop
	Attribution
}

// RecipeContinuedPayload is the payload of recipe_continued.
type RecipeContinuedPayload struct {
	Deployment string `json:"deployment"` // deployment of the recipe
	Condition  string `json:"condition"`  // address of the block for which the recipe had stopped
	Attribution
}

// MetaRecipePlace starts the keys of a store's metadata that have a [RecipePlace] in JSON. The
// name of the deployment follows.
const MetaRecipePlace = "stop recipe "

// RecipePlace is a recipe with conditions in a graph.
type RecipePlace struct {
	Began   int64       `json:"began"` // nanoseconds since 1970
	Stopped *RecipeStop `json:"stopped,omitempty"`
}

// Stopped says why recipes of the graph's members have stopped, by the name of the deployment.
func (g *SavedGraph) Stopped() map[string]RecipeStop {
	out := map[string]RecipeStop{}
	for i := range g.Creatures {
		name, p := g.Creatures[i].Deployment, RecipePlace{}
		if json.Unmarshal([]byte(g.Meta[MetaRecipePlace+name]), &p) == nil && p.Stopped != nil {
			out[name] = *p.Stopped
		}
	}
	return out
}
