package deploy

// HiddenValue replaces the value of a sensitive attribute wherever a plan would show it.
const HiddenValue = "(sensitive value)"

// Declaration is a part of a recipe that no row of a store keeps: a policy, a predicate,
// a species, a description. The engine only uses [PreventDestroy]. A plan compares it
// with what was declared when the deployment was last applied.
type Declaration struct {
	Address  string                   `json:"address"` // unique in the deployment, such as policy.send.short
	Settings map[string]DeclaredValue `json:"settings,omitempty"`
}

// PreventDestroy is the setting of a creature or channel that a recipe may not remove.
// The setting in the recipe that was last applied counts, so that a recipe from which the
// whole block is missing is refused too.
const PreventDestroy = "prevent_destroy"

// DeclaredValue is one attribute of a declaration.
type DeclaredValue struct {
	// Text is the value as plans show it and stores keep it. For a sensitive value it is
	// [HiddenValue].
	Text string `json:"text"`
	// Sensitive means that values may differ even if their Texts are equal.
	Sensitive bool `json:"sensitive,omitempty"`
	// Value is the sensitive value, which no store keeps.
	Value string `json:"-"`
}
