package journal

import "github.com/seed47132306/terrarium/abi"

// CutKind says what became of graphs, and of the sessions that they write. It is stable.
type CutKind string

// The kinds of cuts. A store knows of the first three, and of forks.
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

// The reasons that are no codes of an attempt.
const (
	DeadNotConnected    DeadReason = "not_connected" // no edge led anywhere, as the code of this name says
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

// StopReason says why a creature has stopped. It is stable, and empty if it was told to.
type StopReason string

// StopRemoved is the reason of a creature that is gone for good.
const StopRemoved StopReason = "removed"

// UnlinkReason says why a creature has no parent any more. It is stable.
type UnlinkReason string

// The reasons for a creature without its parent.
const (
	UnlinkSplit   UnlinkReason = "split"   // they came into different graphs
	UnlinkRemoved UnlinkReason = "removed" // the parent is gone
)

// UnwireReason says why an output wire was removed. It is stable.
type UnwireReason string

// The reasons for the end of an output wire.
const (
	UnwireAsked   UnwireReason = "unwired"
	UnwireRecipe  UnwireReason = "recipe"           // the recipe, applied again, does not have it
	UnwireSplit   UnwireReason = "split"            // its ends came into different graphs
	UnwireRemoved UnwireReason = "creature_removed" // its source is gone
)

// PolicyEffect says what came of a policy's word. It is stable.
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
)
