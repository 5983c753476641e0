package deploy

// HiddenValue replaces the value of a sensitive attribute wherever a plan would show it.
const HiddenValue = "(sensitive value)"

// Declaration is a part of a recipe that no row keeps: a policy, a predicate, a species,
// a description. The engine does nothing with it. A plan compares it with what was
// declared when the deployment was last applied.
type Declaration struct {
	Address  string                   `json:"address"` // unique in the deployment, such as policy.send.short
	Settings map[string]DeclaredValue `json:"settings,omitempty"`
}

// DeclaredValue is one attribute of a declaration.
type DeclaredValue struct {
	// Text is the value as plans show it and stores keep it. For a sensitive value it is
	// [HiddenValue].
	Text string `json:"text"`
	// Sensitive says that equal Texts do not mean equal values.
	Sensitive bool `json:"sensitive,omitempty"`
	// Value is the sensitive value, which no store keeps.
	Value string `json:"-"`
}
