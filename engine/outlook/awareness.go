package outlook

import (
	"crypto/sha256"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Awareness is the awareness document: what a creature can know about itself
// and its surroundings. It depends only on the graph, not on traffic, so it
// changes only when the graph does.
type Awareness struct {
	Revision uint64                  `json:"revision"` // of this creature's document; rises whenever the rest of the document changes
	Self     AwareSelf               `json:"self"`
	Channels AwareList[AwareChannel] `json:"channels"` // that it listens or sends on, oldest first
	Wires    AwareWires              `json:"wires"`
	Tools    []string                `json:"tools"` // group tools that it may call
	Graph    AwareGraph              `json:"graph"`
}

// AwareSelf is what a creature knows about itself.
type AwareSelf struct {
	ID          journal.CreatureID    `json:"id"`
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"` // what it is for
	Deployment  string                `json:"deployment,omitempty"`  // the one that declares it
	Address     string                `json:"address,omitempty"`     // within the deployment
	Species     string                `json:"species,omitempty"`
	Privileged  bool                  `json:"privileged"`
	Root        bool                  `json:"root"`             // of its deployment
	Parent      *AwarePeer            `json:"parent,omitempty"` // the creature that it belongs to
	State       journal.CreatureState `json:"state"`            // running, stopped, paused or quarantined; always running in a turn
}

// AwareList is a list of bounded length in a document; it keeps the oldest
// items.
type AwareList[T any] struct {
	Total     int `json:"total"` // how many there are, those left out included
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
	// The other creatures that listen. A worker sees only privileged ones and its parent, and the
	// total number.
	Listeners AwareList[AwarePeer] `json:"listeners"`
	Senders   AwareList[AwarePeer] `json:"senders"` // the other creatures that may send, with the same restriction
}

// AwarePeer is another creature.
type AwarePeer struct {
	ID   journal.CreatureID `json:"id"`
	Name string             `json:"name,omitempty"` // empty if it is in another graph
}

// AwareWires are output wires.
type AwareWires struct {
	In  AwareList[AwareWire] `json:"in"`  // over which the creature gets the output of other creatures
	Out AwareList[AwareWire] `json:"out"` // over which other creatures get its output
}

// AwareWire is an output wire.
type AwareWire struct {
	ID     string    `json:"id"`
	Source AwarePeer `json:"source"`
	Target AwarePeer `json:"target"`
}

// AwareGraph is the graph. Only privileged creatures see more than the id.
type AwareGraph struct {
	ID        journal.GraphID              `json:"id"`
	Members   *AwareList[AwareMember]      `json:"members,omitempty"`   // the creature itself included
	Channels  *AwareList[AwareDeclaration] `json:"channels,omitempty"`  // all of the graph
	Spawnable *AwareList[AwareSpecies]     `json:"spawnable,omitempty"` // what group_add_node can add
}

// AwareMember is a creature of the graph.
type AwareMember struct {
	ID          journal.CreatureID    `json:"id"`
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"`
	Deployment  string                `json:"deployment,omitempty"`
	Address     string                `json:"address,omitempty"`
	Species     string                `json:"species,omitempty"`
	Privileged  bool                  `json:"privileged"`
	Root        bool                  `json:"root"`
	Parent      journal.CreatureID    `json:"parent,omitempty"`
	State       journal.CreatureState `json:"state"` // running, stopped, paused or quarantined
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

// AwareSpecies is a species that can be spawned.
type AwareSpecies struct {
	Species     string `json:"species"`
	Description string `json:"description,omitempty"`
	Limit       int    `json:"limit"` // the most that may exist at a time
}

// The bounds of a document, so that its size does not grow with the graph.
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

// NewView returns the view of a document, which must not be changed
// afterwards.
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

// JSON returns the document as in the source awareness_json. It is encoded on
// the first call. The bytes are shared: do not modify them.
func (v *View) JSON() []byte { return v.json() }

// Markdown returns the document as in the source awareness_markdown, with the
// same rules as JSON.
func (v *View) Markdown() []byte { return v.markdown() }

// Digest returns a hash of a document that has no revision yet.
func (a *Awareness) Digest() []byte {
	sum := sha256.Sum256(journal.JSON(a))
	return sum[:16]
}
