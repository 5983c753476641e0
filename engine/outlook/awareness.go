package outlook

import (
	"crypto/sha256"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Awareness is what a creature can know of itself and of what is around it: the
// awareness document. It depends on the graph alone, not on traffic, so it
// changes only when the graph does.
type Awareness struct {
	Revision uint64                  `json:"revision"` // of this creature's document; rises whenever the rest of it changes
	Self     AwareSelf               `json:"self"`
	Channels AwareList[AwareChannel] `json:"channels"` // that it listens or sends on, eldest first
	Wires    AwareWires              `json:"wires"`
	Tools    []string                `json:"tools"` // group tools that it may call
	Graph    AwareGraph              `json:"graph"`
}

// AwareSelf is what a creature knows of itself.
type AwareSelf struct {
	ID         journal.CreatureID    `json:"id"`
	Name       string                `json:"name"`
	Deployment string                `json:"deployment,omitempty"` // that declares it
	Address    string                `json:"address,omitempty"`    // within the deployment
	Species    string                `json:"species,omitempty"`
	Privileged bool                  `json:"privileged"`
	Root       bool                  `json:"root"`             // of its deployment
	Parent     *AwarePeer            `json:"parent,omitempty"` // the creature that it belongs to
	State      journal.CreatureState `json:"state"`            // running, stopped or quarantined; always running in a turn
}

// AwareList is a list of which a document holds no more than so many items, the
// eldest ones.
type AwareList[T any] struct {
	Total     int `json:"total"` // how many there are, those that are not shown included
	Items     []T `json:"items"`
	Truncated int `json:"truncated,omitempty"` // how many are left out because the document is bounded
}

// AwareChannel is a channel that a creature listens or sends on.
type AwareChannel struct {
	ID          journal.ChannelID `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Report      bool              `json:"report,omitempty"` // the deployment's channel to its root
	Listen      string            `json:"listen,omitempty"` // the alias under which it listens, if it does
	Send        string            `json:"send,omitempty"`   // the alias under which it sends, if it may
	// Listeners and Senders are the others. A worker is shown the privileged ones
	// and its parent, and how many there are.
	Listeners AwareList[AwarePeer] `json:"listeners"`
	Senders   AwareList[AwarePeer] `json:"senders"`
}

// AwarePeer names another creature.
type AwarePeer struct {
	ID   journal.CreatureID `json:"id"`
	Name string             `json:"name,omitempty"` // none if it is in another graph
}

// AwareWires are output wires.
type AwareWires struct {
	In  AwareList[AwareWire] `json:"in"`  // over which the creature gets the output of others
	Out AwareList[AwareWire] `json:"out"` // over which others get its output
}

// AwareWire is an output wire.
type AwareWire struct {
	ID     string    `json:"id"`
	Source AwarePeer `json:"source"`
	Target AwarePeer `json:"target"`
}

// AwareGraph is the graph. All but the id is shown to privileged creatures only.
type AwareGraph struct {
	ID        journal.GraphID              `json:"id"`
	Members   *AwareList[AwareMember]      `json:"members,omitempty"`   // the creature itself included
	Channels  *AwareList[AwareDeclaration] `json:"channels,omitempty"`  // all of the graph
	Spawnable *AwareList[AwareSpecies]     `json:"spawnable,omitempty"` // what group_add_node can add
}

// AwareMember is a creature of the graph.
type AwareMember struct {
	ID         journal.CreatureID    `json:"id"`
	Name       string                `json:"name"`
	Deployment string                `json:"deployment,omitempty"`
	Address    string                `json:"address,omitempty"`
	Species    string                `json:"species,omitempty"`
	Privileged bool                  `json:"privileged"`
	Root       bool                  `json:"root"`
	Parent     journal.CreatureID    `json:"parent,omitempty"`
	State      journal.CreatureState `json:"state"` // running, stopped or quarantined
}

// AwareDeclaration is a channel of the graph.
type AwareDeclaration struct {
	ID          journal.ChannelID `json:"id"`
	Name        string            `json:"name"`
	Address     string            `json:"address,omitempty"`
	Description string            `json:"description,omitempty"`
	Report      bool              `json:"report,omitempty"`
	Listeners   int               `json:"listeners"` // how many creatures
	Senders     int               `json:"senders"`
}

// AwareSpecies is something that can be spawned.
type AwareSpecies struct {
	Species string `json:"species"`
	Limit   int    `json:"limit"` // how many at a time
}

// What a document shows at most, so that its size does not grow with the graph.
const (
	MaxMembers      = 256
	MaxDeclarations = 256
	MaxChannels     = 128 // of the creature's own
	MaxPeers        = 16  // of one channel, in each direction
	MaxWires        = 128 // in each direction
	MaxSpecies      = 128
	MaxDescription  = 256 // bytes
)

// View is one revision of a creature's awareness document. It never changes, and
// may be used by any goroutine.
type View struct {
	doc      *Awareness
	json     func() []byte
	markdown func() []byte
}

// NewView is the view of a document, which is not to be changed any more.
func NewView(doc *Awareness) *View {
	return &View{
		doc:      doc,
		json:     sync.OnceValue(func() []byte { return journal.JSON(doc) }),
		markdown: sync.OnceValue(func() []byte { return doc.markdown() }),
	}
}

// Document returns the document. It is shared: do not modify it.
func (v *View) Document() *Awareness { return v.doc }

// Revision returns the number of the revision.
func (v *View) Revision() uint64 { return v.doc.Revision }

// JSON returns the document as the source awareness_json has it. It is made when
// it is first asked for. The bytes are shared: do not modify them.
func (v *View) JSON() []byte { return v.json() }

// Markdown returns the document as the source awareness_markdown has it, as JSON
// does.
func (v *View) Markdown() []byte { return v.markdown() }

// Digest stands for everything in a document that has no revision yet.
func (a *Awareness) Digest() []byte {
	sum := sha256.Sum256(journal.JSON(a))
	return sum[:16]
}
