package journal

// StopCounters are what the conditions of a recipe count in one graph: of the creatures of the
// recipe that are or were in it, including those that it spawned and those that were removed.
type StopCounters struct {
	Turns    int64 `json:"turns"`            // committed turns
	Messages int64 `json:"messages"`         // messages that creatures have sent, requests and outputs over wires included
	Tokens   int64 `json:"tokens,omitempty"` // used of language models
	Money    int64 `json:"money,omitempty"`  // used of language models, in millionths
	Elapsed  int64 `json:"elapsed"`          // nanoseconds since the recipe began
}

// RecipeStop says why the creatures of a recipe in a graph do not work.
type RecipeStop struct {
	Deployment string       `json:"deployment"` // of the recipe
	Condition  string       `json:"condition"`  // the address of the block, such as stop_when.enough
	Reason     string       `json:"reason"`     // what was reached, in words
	Time       int64        `json:"time"`       // when; nanoseconds since 1970
	Counters   StopCounters `json:"counters"`   // as they were then
}

// RecipeContinuedPayload is the payload of recipe_continued.
type RecipeContinuedPayload struct {
	Deployment string `json:"deployment"` // of the recipe
	Condition  string `json:"condition"`  // for which the recipe had stopped
}
