package journal

import "github.com/seed47132306/terrarium/abi"

// CutKind describes how a change affected graphs and their sessions. The values are stable.
type CutKind string

// The kinds of cuts. Stores use merge, split, rearrange and fork.
const (
	CutMerge     CutKind = "merge"
	CutSplit     CutKind = "split"
	CutRearrange CutKind = "rearrange" // several graphs became several others, or one continued under another id
	CutFork      CutKind = "fork"      // a copy in another directory: nothing is divided
	CutNone      CutKind = "none"      // the members of every graph are still together
	CutBegin     CutKind = "begin"     // a graph began
	CutEnd       CutKind = "end"       // a graph ended
)

// DeliveryKind is the name of an [abi.Kind]: start, message, timer, …
type DeliveryKind string

// KindOfDelivery returns the name of a kind.
func KindOfDelivery(k abi.Kind) DeliveryKind { return DeliveryKind(k.String()) }

// DeadReason is the reason why a message became a dead letter: one of the constants, or the
// name of the [abi.Code] with which its last attempt failed. The values are stable.
type DeadReason string

// The reasons that are not codes of an attempt.
const (
	DeadNotConnected    DeadReason = "not_connected" // no edge led anywhere, like the code of this name
	DeadOverflow        DeadReason = "overflow"
	DeadChannelRemoved  DeadReason = "channel_removed"
	DeadCreatureRemoved DeadReason = "creature_removed"
)

// StartReason is the reason why a creature got an instance. The values are stable.
type StartReason string

// The reasons for an instance.
const (
	StartFirst    StartReason = "first"
	StartReplaced StartReason = "replaced"
	StartRetry    StartReason = "retry"
)

// StopReason is the reason why a creature has stopped, or empty if an operation stopped it.
// The values are stable.
type StopReason string

// The reasons why a creature has stopped.
const (
	StopRemoved StopReason = "removed" // it was removed
	StopPaused  StopReason = "paused"  // it was paused, and keeps its instance
)

// UnlinkReason is the reason why a creature has lost its parent. The values are stable.
type UnlinkReason string

// The reasons for losing a parent.
const (
	UnlinkSplit   UnlinkReason = "split"   // a split put them into different graphs
	UnlinkRemoved UnlinkReason = "removed" // the parent was removed
)

// UnwireReason is the reason why an output wire was removed. The values are stable.
type UnwireReason string

// The reasons for the removal of an output wire.
const (
	UnwireAsked   UnwireReason = "unwired"
	UnwireRecipe  UnwireReason = "recipe"           // the recipe, applied again, does not declare it
	UnwireSplit   UnwireReason = "split"            // a split put its ends into different graphs
	UnwireRemoved UnwireReason = "creature_removed" // its source was removed
)

// PolicyEffect is the effect that a policy had. The values are stable.
type PolicyEffect string

// The effects of policies.
const (
	PolicyDenied  PolicyEffect = "denied"
	PolicyDropped PolicyEffect = "dropped"
	PolicyAudit   PolicyEffect = "audit"
	PolicyWarning PolicyEffect = "warning"
	PolicyRuled   PolicyEffect = "ruled"
	PolicyChanged PolicyEffect = "changed" // a message from outside was changed; for messages of creatures, the turn has a note
)

// CreatureState tells whether a creature handles deliveries and, if not, why. The values
// are stable.
type CreatureState string

// The states of creatures.
const (
	Running     CreatureState = "running"
	Stopped     CreatureState = "stopped" // by the owner, a group tool or a policy
	Paused      CreatureState = "paused"  // by a group tool; it keeps its instance
	Quarantined CreatureState = "quarantined"
	BackingOff  CreatureState = "backing_off" // pausing before another attempt
	// AwaitingApproval is the state of a creature whose turn waits for an operator's answer
	// to the question of a policy.
	AwaitingApproval CreatureState = "awaiting_approval"
)
