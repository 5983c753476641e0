package journal

import "github.com/seed47132306/terrarium/abi"

// CutKind says how a change affected graphs and their sessions. It is stable.
type CutKind string

// The kinds of cuts. Stores use the first three and forks.
const (
	CutMerge     CutKind = "merge"
	CutSplit     CutKind = "split"
	CutRearrange CutKind = "rearrange" // several graphs became several others, or one went on under another id
	CutFork      CutKind = "fork"      // a copy in another directory: nothing is divided
	CutNone      CutKind = "none"      // the members of every graph are still together
	CutBegin     CutKind = "begin"     // there was no graph before
	CutEnd       CutKind = "end"       // there is none afterwards
)

// DeliveryKind is the name of an [abi.Kind]: start, message, timer, …
type DeliveryKind string

// KindOfDelivery is the name of a kind.
func KindOfDelivery(k abi.Kind) DeliveryKind { return DeliveryKind(k.String()) }

// DeadReason says why a message became a dead letter: one of these, or the name of the
// [abi.Code] with which its last attempt failed. It is stable.
type DeadReason string

// The reasons that are not codes of an attempt.
const (
	DeadNotConnected    DeadReason = "not_connected" // no edge led anywhere, like the code of this name
	DeadOverflow        DeadReason = "overflow"
	DeadChannelRemoved  DeadReason = "channel_removed"
	DeadCreatureRemoved DeadReason = "creature_removed"
)

// StartReason says why a creature got an instance. It is stable.
type StartReason string

// The reasons for an instance.
const (
	StartFirst    StartReason = "first"
	StartReplaced StartReason = "replaced"
	StartRetry    StartReason = "retry"
)

// StopReason says why a creature has stopped. It is stable, and empty if an operation
// stopped it.
type StopReason string

// StopRemoved is the reason of a creature that was removed.
const StopRemoved StopReason = "removed"

// UnlinkReason says why a creature has lost its parent. It is stable.
type UnlinkReason string

// The reasons for losing a parent.
const (
	UnlinkSplit   UnlinkReason = "split"   // they came into different graphs
	UnlinkRemoved UnlinkReason = "removed" // the parent was removed
)

// UnwireReason says why an output wire was removed. It is stable.
type UnwireReason string

// The reasons for the end of an output wire.
const (
	UnwireAsked   UnwireReason = "unwired"
	UnwireRecipe  UnwireReason = "recipe"           // the recipe, applied again, does not declare it
	UnwireSplit   UnwireReason = "split"            // its ends came into different graphs
	UnwireRemoved UnwireReason = "creature_removed" // its source was removed
)

// PolicyEffect says what effect a policy had. It is stable.
type PolicyEffect string

// The effects of policies.
const (
	PolicyDenied  PolicyEffect = "denied"
	PolicyDropped PolicyEffect = "dropped"
	PolicyAudit   PolicyEffect = "audit"
	PolicyWarning PolicyEffect = "warning"
	PolicyRuled   PolicyEffect = "ruled"
	PolicyChanged PolicyEffect = "changed" // a message from outside; those of creatures are noted with their turns
)

// CreatureState says whether a creature takes deliveries, and if not, why. It is stable.
type CreatureState string

// The states of creatures.
const (
	Running     CreatureState = "running"
	Stopped     CreatureState = "stopped" // by the owner, a group tool or a policy
	Quarantined CreatureState = "quarantined"
	BackingOff  CreatureState = "backing_off" // it pauses before another attempt
	// AwaitingApproval is the state of a creature whose turn waits for an operator's answer
	// to the question of a policy.
	AwaitingApproval CreatureState = "awaiting_approval"
)
