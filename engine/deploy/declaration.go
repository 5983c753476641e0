package deploy

// HiddenValue stands for the value of a sensitive attribute wherever a plan would
// show it.
const HiddenValue = "(sensitive value)"

// Declaration is something that a recipe says and no row keeps: a policy, a predicate,
// a species, a description. Nothing is done by it; a plan compares it with what was
// declared when the deployment was applied last.
type Declaration struct {
	Address  string                   `json:"address"` // unique in the deployment, such as policy.send.short
	Settings map[string]DeclaredValue `json:"settings,omitempty"`
}

// DeclaredValue is what a declaration says of one attribute.
type DeclaredValue struct {
	// Text is the value as a plan shows it, and as stores keep it; that of a sensitive
	// one is [HiddenValue].
	Text string `json:"text"`
	// Sensitive says that Text does not tell values apart.
	Sensitive bool `json:"sensitive,omitempty"`
	// Value is a sensitive one, which no store keeps.
	Value string `json:"-"`
}
