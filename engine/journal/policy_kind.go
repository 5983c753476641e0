package journal

import "slices"

// PolicyKind is what a policy judges.
type PolicyKind string

// The kinds. Messages ([JudgeSend]) are judged by the method Send of a policy, everything
// else by its method Judge.
const (
	JudgePlan       PolicyKind = "plan"       // a deployment is applied
	JudgeSpawn      PolicyKind = "spawn"      // a creature is added
	JudgeRemove     PolicyKind = "remove"     // a creature is removed
	JudgeReplace    PolicyKind = "replace"    // the module of a creature is replaced
	JudgeConnect    PolicyKind = "connect"    // creatures are connected, or an edge is turned on
	JudgeDisconnect PolicyKind = "disconnect" // creatures are disconnected, an edge is turned off, or a channel is removed
	JudgeMerge      PolicyKind = "merge"      // graphs become one
	JudgeSplit      PolicyKind = "split"      // a graph becomes several
	JudgeWire       PolicyKind = "wire"       // an output wire is added or removed
	JudgeSend       PolicyKind = "send"       // a message is sent on a channel
	JudgeTool       PolicyKind = "tool"       // a group tool is called
	JudgeFail       PolicyKind = "fail"       // a turn has failed
	JudgeCapability PolicyKind = "capability" // a request is made to a capability
)

// PolicyKinds lists all kinds of events that the engine submits to policies.
func PolicyKinds() []PolicyKind {
	return slices.Clone(policyKinds)
}

var policyKinds = []PolicyKind{
	JudgePlan, JudgeSpawn, JudgeRemove, JudgeReplace, JudgeConnect, JudgeDisconnect, JudgeMerge, JudgeSplit, JudgeWire, JudgeSend, JudgeTool, JudgeFail, JudgeCapability,
}
