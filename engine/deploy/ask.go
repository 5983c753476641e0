package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Ask is the question of a policy whether an event may happen. Its reason is for the
// operator who answers.
type Ask struct {
	Verdict
	Within time.Duration // how long it waits; 0: [DefaultAskWithin]
	Allow  bool          // approve when the time is over, rather than deny
}

// How long a question waits.
const (
	DefaultAskWithin = 24 * time.Hour
	MaxAskWithin     = 365 * 24 * time.Hour
)

// DenyAsks turns the questions into denials, because no turn of a creature could wait for
// the answers.
func (w *Words) DenyAsks() {
	if len(w.Denials) == 0 {
		for _, a := range w.Asks {
			w.Denials = append(w.Denials, a.Denial())
		}
	}
	w.Asks = nil
}

// Denial returns the denial that replaces the question if no turn can wait for its
// answer.
func (a *Ask) Denial() Verdict {
	v := a.Verdict
	v.Reason = "it needs approval, for which only the turn of a creature can wait: " + v.Reason
	return v
}

// Question is what an approval covers: an event about which a policy asks. Two questions
// are the same if their hashes are.
type Question struct {
	Event   journal.PolicyKind
	Call    string
	Subject string
	Channel journal.ChannelID
	Content []byte            // for the operator: a message, or JSON
	Headers map[string]string // of a message
	Hash    string
}

// hashOf hashes the parts of an event that make it the same question. Names of members
// and ids of graphs are not among them, because they change by themselves. n
// distinguishes equal questions of one turn.
func hashOf(deployment, policy string, n int, about any) string {
	sum := sha256.Sum256(journal.JSON(struct {
		Deployment string `json:"deployment"`
		Policy     string `json:"policy"`
		N          int    `json:"n"`
		About      any    `json:"about"`
	}{deployment, policy, n, about}))
	return hex.EncodeToString(sum[:])
}

// Question is what a policy asks about a message, after all changes by policies. n is the
// number of earlier equal messages of the turn.
func (ev *SendEvent) Question(policy string, channel journal.ChannelID, payload []byte, headers map[string]string, n int) Question {
	return Question{
		Event: journal.JudgeSend, Subject: "a message on " + ev.ChannelName, Channel: channel, Content: payload, Headers: headers,
		Hash: hashOf(ev.Deployment, policy, n, struct {
			Channel journal.ChannelID `json:"channel"`
			Message string            `json:"message"`
		}{channel, journal.HashMessage(payload, headers)}),
	}
}

// Spawned describes a creature to be spawned, beyond what the fields of the event tell
// policies.
type Spawned struct {
	Spec  *CreatureSpec
	Edges []string // channels with directions and aliases, by name
}

// shown is what an operator sees of the configuration and the edges.
func (s *Spawned) shown(a *action) {
	a.Config, a.Edges = WithoutSecrets(s.Spec), s.Edges
}

// hash covers the whole specification of the creature, including values that no store may
// keep.
func (s *Spawned) hash() string {
	sum := sha256.Sum256(journal.JSON(struct {
		Module     [sha256.Size]byte
		Config     json.RawMessage
		Privileged bool
		Grants     journal.Grants
		Limits     abi.Limits
		Edges      []string
		Reach      []Capability `json:",omitempty"`
	}{sha256.Sum256(s.Spec.Wasm), s.Spec.Config, s.Spec.Privileged, s.Spec.Grants, s.Spec.Limits, s.Edges, s.Spec.Capabilities}))
	return hex.EncodeToString(sum[:])
}

// action describes to an operator what would happen.
type action struct {
	Call      string              `json:"call,omitempty"`
	Tool      string              `json:"tool,omitempty"`
	Arguments json.RawMessage     `json:"arguments,omitempty"`
	Creature  string              `json:"creature,omitempty"`
	Species   string              `json:"species,omitempty"`
	Module    string              `json:"module,omitempty"`
	Parent    string              `json:"parent,omitempty"`
	Listen    []string            `json:"listen,omitempty"`
	Send      []string            `json:"send,omitempty"`
	Workers   []string            `json:"workers,omitempty"`
	From      string              `json:"from,omitempty"`
	To        string              `json:"to,omitempty"`
	Channel   string              `json:"channel,omitempty"`
	Wire      *journal.OutputWire `json:"wire,omitempty"`
	Added     bool                `json:"added,omitempty"`
	Config    json.RawMessage     `json:"config,omitempty"`
	Edges     []string            `json:"edges,omitempty"`
	Graphs    []journal.GraphID   `json:"graphs,omitempty"`
	Parts     [][]string          `json:"parts,omitempty"`
	Reach     string              `json:"capability,omitempty"`
	Request   json.RawMessage     `json:"request,omitempty"`
}

// Question is what a policy asks about another event. n is the number of earlier equal
// calls of the turn.
func (ev *PolicyEvent) Question(policy string, n int) Question {
	shown := ev.action(func(p Party) string { return p.Name }, ev.Channel.Name)
	hashed := ev.action(func(p Party) string { return string(p.ID) }, string(ev.Channel.ID))
	if ev.Kind == journal.JudgeSpawn {
		hashed.Creature = ev.Creature.Name // its id is derived from the turn
	}
	if ev.Channel.ID == "" {
		hashed.Channel = ev.Channel.Name
	}
	if ev.Wire != nil {
		w := *ev.Wire
		w.ID = ""
		hashed.Wire = &w
	}
	spawned := ""
	if ev.Spawned != nil {
		ev.Spawned.shown(&shown)
		spawned = ev.Spawned.hash()
	}
	hashed.Graphs, hashed.Parts = nil, nil // they follow from the rest
	return Question{
		Event: ev.Kind, Call: ev.Call, Subject: ev.Subject(), Channel: ev.Channel.ID, Content: journal.JSON(shown),
		Hash: hashOf(ev.Deployment, policy, n, struct {
			Kind    journal.PolicyKind `json:"kind"`
			Spawned string             `json:"spawned,omitempty"`
			action
		}{ev.Kind, spawned, hashed}),
	}
}

// SpawnedID is the creature that would be spawned, or empty.
func (ev *PolicyEvent) SpawnedID() journal.CreatureID {
	if ev.Kind != journal.JudgeSpawn {
		return ""
	}
	return ev.Creature.ID
}

func (ev *PolicyEvent) action(party func(Party) string, channel string) action {
	a := action{
		Call: ev.Call, Tool: ev.Tool, Creature: party(ev.Creature), Species: ev.Creature.Species, Module: ev.Module, Parent: party(ev.Parent),
		Listen: ev.Listen, Send: ev.Send, Workers: ev.Workers, From: party(ev.From), To: party(ev.To), Channel: channel,
		Wire: ev.Wire, Added: ev.Added, Parts: ev.Parts,
	}
	if ev.Capability != "" {
		a.Reach, a.Request = string(ev.Capability)+"."+ev.Grant, ev.Request
	}
	if json.Valid(ev.Arguments) {
		a.Arguments = ev.Arguments
	}
	for _, g := range ev.Graphs {
		a.Graphs = append(a.Graphs, g.ID)
	}
	return a
}
