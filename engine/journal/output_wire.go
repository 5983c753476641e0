package journal

// WireID names an output wire.
type WireID string

// ToRoot as the target of an output wire stands for the root of the source's own
// deployment, whichever creature that is at the time of a delivery.
const ToRoot CreatureID = "root"

// The bounds of output wires.
const (
	// MaxWires is the largest number of output wires from one creature.
	MaxWires = 64
	// MaxPrompt is the largest size of the prompt of an output wire, in bytes.
	MaxPrompt = 16 << 10
	// MaxHops is how many output wires in a row a chain of outputs may pass. An output
	// that a creature produces because of an output over a wire has one hop more. Beyond
	// the limit, a delivery becomes a dead letter whose error names the loop.
	MaxHops = 64
)

// OutputWire delivers the output of one creature to another, or to its root. At the end
// of a turn with output, as part of its commit, the target gets a delivery of the kind
// output. Wires do not connect graphs: both ends are in the same graph when a wire is
// added, and a split that separates them removes it.
type OutputWire struct {
	ID   WireID     `json:"wire"`           // its id
	Name string     `json:"name,omitempty"` // unique among the wires of the source; may be empty
	From CreatureID `json:"from"`           // the source
	To   CreatureID `json:"to"`             // the target: the id of a creature, or root
	// Whether the output itself is delivered; without it, the target learns
	// where the output came from and how large it is.
	WithContent bool `json:"with_content"`
	// The template of what is delivered, which may contain {output}, {source} and
	// {channel}. If it is empty, the output is delivered as it is or, without content, a
	// JSON object.
	Prompt string `json:"prompt,omitempty"`
	// A predicate of the source's deployment: only outputs for which it holds are
	// delivered. Empty means all.
	When string `json:"when,omitempty"`
	// whether it may lead back to its source
	AllowSelf bool `json:"allow_self,omitempty"`
	// its position among the wires of the source
	Order uint64 `json:"-"`
}

// SameAs reports whether two wires are equal except for their names, ids and positions.
func (w OutputWire) SameAs(o OutputWire) bool {
	w.ID, w.Name, w.Order = o.ID, o.Name, o.Order
	return w == o
}

// Label returns the wire's name or, if it has none, its id. It is for messages.
func (w *OutputWire) Label() string {
	if w.Name != "" {
		return w.Name
	}
	return string(w.ID)
}
