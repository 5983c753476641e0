package deploy

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Policy judges what the members of a deployment are about to do, and what is about to be
// done to them. A decision depends only on the event, on the graph that the event shows
// and on what the policy remembers.
//
// The engine only asks a policy. What a policy holds, such as processes, belongs to the
// caller, who may release it when the engine is closed, or when the deployment could not
// be applied.
//
// Its methods may be called from any goroutine. They must not call methods of the engine:
// operations on the graph are judged while the engine is changing it, see [PolicyEvent].
type Policy interface {
	// Judges reports whether events of a kind are to be judged at all. The engine may
	// keep the answer: kinds that no policy judges cost nothing.
	Judges(kind journal.PolicyKind) bool
	// JudgesSend reports whether sends on a channel are to be judged at all.
	// The engine asks once per channel and keeps the answer.
	JudgesSend(channelAddress string) bool
	// Send judges one message before it gets its number. It is called outside of critical
	// sections, and may take as long as the policy's own timeout. It does not fail: a
	// policy that cannot decide denies, unless it was declared otherwise.
	//
	// It is called once per message, and again if another decision in the same graph has
	// meanwhile changed what the policy remembers.
	Send(ctx context.Context, event *SendEvent) SendDecision
	// Judge judges an event of any other kind. It does not fail either.
	Judge(ctx context.Context, event *PolicyEvent) Decision
}

// SendEvent is a message about to be sent. The slices are not to be modified
// or kept.
type SendEvent struct {
	Time             int64 // the turn's time, nanoseconds since 1970
	Seed             uint64
	Graph            journal.GraphID
	Deployment       string // of the channel; its policies judge
	ChannelName      string
	ChannelAddress   string
	SenderName       string // empty when it comes from outside
	SenderAddress    string
	SenderSpecies    string
	SenderDeployment string // in which SenderAddress and SenderSpecies are defined
	Payload          []byte
	Headers          map[string]string // nil when there are none

	Surroundings
}

// SendDecision is what a policy decided about a message.
type SendDecision struct {
	Words
	// Dropped drops the message without counting it as denied.
	Dropped *Verdict
	// Mutated says that Payload and Headers replace those of the message. ChangedBy are
	// the policies that changed it.
	Mutated   bool
	Payload   []byte
	Headers   map[string]string
	ChangedBy []Verdict
	// Original keeps the original message in the log if policies have changed it or, when
	// a creature has sent it, dropped it. Otherwise the log has a hash of it.
	Original bool
}

// Words are the verdicts of the policies of a deployment.
type Words struct {
	// Denials are the objections. A single one denies the event.
	Denials []Verdict `json:",omitempty"`
	// Warnings and Audits (denials that are only recorded) have no effect.
	Warnings []Verdict `json:",omitempty"`
	Audits   []Verdict `json:",omitempty"`
	// Asks are questions to an operator. The event waits until all of them are approved.
	// With a denial they are not asked.
	Asks []Ask `json:",omitempty"`
}

// Verdict is what one policy says.
type Verdict struct {
	Policy string // its name
	Reason string
	Where  string // where in the recipe, for example "team.hcl:48"
	Failed bool   `json:",omitempty"` // it did not decide: Reason is its error
	Limit  bool   `json:",omitempty"` // it asks for an approval beyond a limit
}

// String names the policy, its position and the reason.
func (v Verdict) String() string {
	who := "policy " + v.Policy
	if v.Where != "" {
		who += " (" + v.Where + ")"
	}
	if v.Reason == "" {
		return who
	}
	return who + ": " + v.Reason
}

// Surroundings are what a policy can read besides the event. Both may be nil.
type Surroundings struct {
	// View returns the graph as it is when the policy first asks. For an operation on the
	// graph, it returns the graph before the operation. It is called only while the event
	// is being judged, by the goroutine that judges.
	View func() *GraphView `json:"-"`
	// Memory is what the deployment's policies remember in this graph.
	Memory PolicyMemory `json:"-"`
}

// PolicyMemory is what the policies of one deployment remember in one graph. It is used
// only while an event is being judged, by the goroutine that judges.
//
// What is remembered takes effect together with the turn or operation that was judged. If
// that does not happen, nothing is remembered. When graphs merge, the memory of the graph
// that keeps its id is kept; when a graph splits, each part gets a copy.
type PolicyMemory interface {
	// Recall returns what a policy remembers, as JSON; nil for nothing.
	Recall(policy string) []byte
	// Remember replaces it; nil deletes it. It keeps the slice.
	Remember(policy string, value []byte)
}

// MaxPolicyMemory is how many bytes of JSON a policy may remember in a graph.
const MaxPolicyMemory = 16 << 10
