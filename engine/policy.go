package engine

import "context"

// Policy judges what the members of a deployment are about to do. A decision
// depends only on the event.
//
// Its methods may be called from any goroutine.
type Policy interface {
	// JudgesSend reports whether sends on a channel are to be judged at all.
	// The engine asks once per channel and keeps the answer.
	JudgesSend(channelAddress string) bool
	// Send judges one message before it gets its number. It is called once per
	// message, outside of critical sections, and may take as long as the
	// policy's own timeout. It does not fail: a policy that cannot decide
	// denies, unless it was declared otherwise.
	Send(ctx context.Context, event *SendEvent) SendDecision
}

// SendEvent is a message about to be sent. The slices are not to be modified
// or kept.
type SendEvent struct {
	Time           int64 // the turn's time, nanoseconds since 1970
	Seed           uint64
	Graph          GraphID
	Deployment     string
	ChannelName    string
	ChannelAddress string
	SenderName     string // empty when it comes from outside
	SenderAddress  string
	Payload        []byte
	Headers        map[string]string // nil when there are none
}

// SendDecision is what a policy decided.
type SendDecision struct {
	// Denials are the objections; any one denies the send.
	Denials []Verdict
	// Warnings and Audits (denials that are only recorded) do not change
	// anything.
	Warnings []Verdict
	Audits   []Verdict
	// Dropped leaves the message out without calling it denied.
	Dropped *Verdict
	// Mutated says that Payload and Headers replace those of the message.
	Mutated bool
	Payload []byte
	Headers map[string]string
}

// Verdict is one policy's word.
type Verdict struct {
	Policy string // its name
	Reason string
	Where  string // where in the recipe, for example "team.hcl:48"
}
