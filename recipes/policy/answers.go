package policy

import "github.com/seed47132306/terrarium/engine/journal"

// Occasion is a kind of event that policies judge. Texts are Markdown, with links
// relative to docs/reference.
type Occasion struct {
	Kind journal.PolicyKind
	Doc  string // when policies are asked
}

// Occasions are all kinds.
var Occasions = []Occasion{
	{journal.JudgePlan, "the recipe is applied: asked once, with everything that would change"},
	{journal.JudgeSpawn, "a creature is added, by an operation or a [group tool](tools.md)"},
	{journal.JudgeRemove, "a creature is removed"},
	{journal.JudgeReplace, "the module of a creature is replaced by an operation; changes by a recipe are judged as its `plan`"},
	{journal.JudgeConnect, "creatures are connected, or an edge is turned on"},
	{journal.JudgeDisconnect, "creatures are disconnected, an edge is turned off, or a channel is removed"},
	{journal.JudgeMerge, "an operation merges graphs"},
	{journal.JudgeSplit, "an operation splits a graph"},
	{journal.JudgeWire, "an output wire is added or removed"},
	{journal.JudgeSend, "a message is sent on a channel of the deployment, by a creature or from outside"},
	{journal.JudgeTool, "a creature of the deployment calls a group tool"},
	{journal.JudgeFail, "a turn of a creature has failed"},
	{journal.JudgeCapability, "a creature of the deployment makes a request to a [capability](http.md), such as an HTTP request"},
}

// Answer is an answer that a script may return.
type Answer struct {
	Call string // as a script writes it
	On   string // the events that allow it
	Doc  string // what it means
	kind kind
}

// Answers are all answers; scripts have a function for each kind.
var Answers = []Answer{
	{"allow()", "all", "the same as no answer", kindAllow},
	{"deny(reason)", "all but `fail`", "the event does not happen, and the caller gets `denied`; for `capability` as the result", kindDeny},
	{"ask(reason, {within: \"2h\", otherwise: \"allow\"})", "all but `plan` and `fail`", "the turn of the creature [waits for approval](../how-to/approve.md); events from outside are denied", kindAsk},
	{"warn(reason)", "all", "recorded only", kindWarn},
	{"patch({payload, base64, headers})", "`send`, mode `mutate`", "the message is replaced", kindPatch},
	{"drop(reason)", "`send`, mode `mutate`", "the message is dropped; a sending creature continues, a sender from outside gets `denied`", kindDrop},
	{"patch({request: {url, method, headers, body}})", "`capability`, mode `mutate`", "members of the request are replaced; what the capability does not allow is denied", kindPatch},
	{"patch({names: {NAME: \"unify\"}})", "`merge`, mode `mutate`", "`unify` or `rename`: how channels of that name are merged", kindPatch},
	{"restart(reason)", "`fail`", "the delivery is tried again, however many attempts there were", kindRestart},
	{"drop(reason)", "`fail`", "it becomes a dead letter", kindDrop},
	{"quarantine(reason)", "`fail`", "the creature is quarantined; the delivery waits", kindQuarantine},
}
