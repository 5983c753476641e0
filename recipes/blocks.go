package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
)

// Names of labels in messages.
var (
	named        = []string{"name"}
	eventAndName = []string{"event", "name"}
)

// templates are the blocks that describe how creatures are made.
var templates = []string{"creature", "species", "catalog"}

// Attributes that several blocks have.
var (
	attrDescription = Attribute{Name: "description", Type: TextValue, Doc: "what it is for"}
	attrPurpose     = Attribute{Name: "description", Type: TextValue, Without: "that of the module", Doc: purposeDoc}
	attrForEach     = Attribute{Name: "for_each", Type: "map or set of texts", Without: "one", Doc: "one for each element"}
	attrConfig      = Attribute{Name: "config", Type: "object", Default: "{}", Doc: "the configuration of its creatures"}
	attrWorkers     = Attribute{Name: "workers", Type: ChoiceValue, Choices: []string{"keep", "remove"}, Default: "keep",
		Doc: "whether a creature's [workers](recipes.md#workers) are removed with it"}
	attrPreventDestroy = Attribute{Name: deploy.PreventDestroy, Type: FlagValue, Default: "false",
		Doc: "refuse to apply a recipe that would [remove](recipes.md#prevent_destroy) it"}
	attrFile    = Attribute{Name: "file", Type: TextValue, Doc: "the file with the script; exactly one of `run` and `file` is required"}
	attrTimeout = Attribute{Name: "timeout", Type: DurationValue, Default: policy.DefaultTimeout.String(), Doc: "how long the script may take, at most " + plainDuration(policy.MaxTimeout)}
)

const purposeDoc = "what it is for, in at most 4,096 bytes; [group tools](tools.md) and [awareness documents](awareness.md) show it"

// language describes all blocks. Every attribute that the loader reads is listed here.
var language = slices.Concat(ownBlocks, capabilityBlocks(), connectorBlocks())

var ownBlocks = []Block{
	{Name: "terrarium", Doc: "the deployment", Attributes: []Attribute{
		{Name: "name", Type: TextValue, Without: "the name of the file or folder", Doc: "name of the deployment; sessions are matched by it"},
		{Name: "required_version", Type: TextValue, Without: "any", Doc: "versions of terrarium that can run the recipe, such as `\">= 0.1, < 2\"`"},
	}},
	{Name: "session", Doc: "how the session is kept", Attributes: []Attribute{
		{Name: "durability", Type: ChoiceValue, Choices: []string{"full", "normal", "none"}, Without: "`normal` with a session directory",
			Doc: "`full` survives power loss, `normal` a killed process, `none` keeps nothing: [durability](durability.md)"},
		{Name: "sync_every", Type: DurationValue, Without: "left to the system", Doc: "with the durability `normal`, a [power failure](durability.md#after-a-power-failure-with-normal) loses at most what was written in this time, from " +
			plainDuration(journal.MinSyncEvery) + " to " + plainDuration(journal.MaxSyncEvery) + "; `--sync-every` takes precedence"},
		{Name: "merge", Type: ChoiceValue, Choices: []string{"deny", "allow"}, Default: "deny", Doc: "whether a [group tool](tools.md) may merge its graph with another"},
	}},
	{Name: "variable", Labels: named, Repeated: true, Doc: "a value that the caller sets", Attributes: []Attribute{
		{Name: "type", Type: "type", Without: "any", Doc: "such as `string`, `number`, `bool`, `list(string)`, `map(object({ a = optional(number, 3) }))`; in a [sub-recipe](recipes.md#recipe) also `channel`, `creature`, `species`, `predicate`, or a `list`, `set` or `map` of one of these"},
		{Name: "default", Type: "any", Without: "a value is required", Doc: "the value if none is given"},
		attrDescription,
		{Name: "sensitive", Type: FlagValue, Default: "false", Doc: "keep the value out of messages and out of stores"},
	}},
	{Name: "validation", Within: []string{"variable"}, Repeated: true, Doc: "a condition on the value", Attributes: []Attribute{
		{Name: "condition", Type: FlagValue, Required: true, Doc: "an expression on the variable"},
		{Name: "error_message", Type: TextValue, Required: true, Doc: "the message if it is false"},
	}},
	{Name: "locals", Repeated: true, Doc: "named values", Others: "a value with that name"},
	{Name: "function", Labels: named, Repeated: true, Doc: "a function for expressions", Attributes: []Attribute{
		{Name: "params", Type: "list of names", Required: true, Doc: "its parameters, without quotes"},
		{Name: "result", Type: "any", Required: true, Doc: "an expression over its parameters, and nothing else"},
		{Name: "variadic_param", Type: "name", Doc: "one more parameter, a list of all further arguments"},
		attrDescription,
	}},
	{Name: "channel", Labels: named, Repeated: true, Doc: "a channel for messages", Attributes: []Attribute{attrForEach, attrPreventDestroy, attrDescription}},
	{Name: "creature", Labels: named, Repeated: true, Doc: "a creature and its wiring", Attributes: []Attribute{
		attrForEach,
		{Name: "species", Type: "species", Doc: "where its module, configuration and limits come from"},
		{Name: "module", Type: TextValue, Without: "that of the species", Doc: "a path, relative to the recipe's folder, or `\"builtin:NAME\"`"},
		{Name: "listen", Type: "channels", Without: "nothing", Doc: "channels it listens on: a list, or an object by alias; an alias may have a list"},
		{Name: "send", Type: "channels", Without: "nothing", Doc: "channels it may send on: a list, or an object by alias"},
		{Name: "config", Type: "object", Default: "{}", Doc: "overrides that of the species, attribute by attribute"},
		{Name: "workers", Type: ChoiceValue, Choices: attrWorkers.Choices, Without: "that of the species, else `keep`", Doc: attrWorkers.Doc},
		{Name: "privileged", Type: FlagValue, Default: "false", Doc: "may use all [group tools](tools.md)"},
		{Name: "name", Type: TextValue, Without: "the label", Doc: "another name"},
		attrPreventDestroy,
		{Name: "description", Type: TextValue, Without: "that of the species, else that of the module", Doc: purposeDoc},
	}},
	{Name: "species", Labels: named, Repeated: true, Doc: "settings that creatures share", Attributes: []Attribute{
		{Name: "module", Type: TextValue, Doc: "as for a creature"},
		attrConfig, attrWorkers,
		{Name: "spawnable", Type: CountValue, Without: "none", Doc: "how many creatures may be *spawned* from it at run time, in addition to those that the recipe declares"},
		attrPurpose,
	}},
	{Name: "catalog", Labels: named, Repeated: true, Doc: "a species for every module in a folder", Attributes: []Attribute{
		{Name: "folder", Type: TextValue, Required: true, Doc: "a folder within the recipe's folder, by its relative path, or any folder by its absolute path"},
		{Name: "spawnable", Type: CountValue, Required: true, Doc: "how many creatures may be spawned of each species"},
		attrConfig, attrWorkers, attrPurpose,
	}},
	{Name: "limits", Within: templates, Doc: "[what it may use](limits.md)", Attributes: limitAttributes()},
	{Name: "restart", Within: templates, Doc: "[how failed turns are handled](limits.md#after-a-failure)", Attributes: restartAttributes()},
	{Name: "mailbox", Within: templates, Doc: "[the deliveries that wait for it](limits.md#mailboxes)", Attributes: []Attribute{
		{Name: "size", Type: CountValue, Default: fmt.Sprint(abi.DefaultLimits.Mailbox), Doc: "deliveries held in memory; the same as the limit `mailbox`"},
		{Name: "overflow", Type: ChoiceValue, Choices: []string{"block", "drop_oldest", "dead_letter"}, Default: "block", Doc: "how further deliveries are handled without a store"},
	}},
	{Name: "grants", Within: templates, Doc: "what it can reach outside, and access to sources of nondeterminism", Attributes: []Attribute{
		{Name: "http", Type: TextsValue, Without: "those of the species, else none", Doc: "names of [`http`](recipes.md#http) blocks: the servers that it may send requests to"},
		{Name: "llm", Type: TextsValue, Without: "those of the species, else none", Doc: "names of [`llm`](recipes.md#llm) blocks: the language models that it may use"},
		{Name: "capabilities", Type: TextsValue, Without: "those of the species, else none", Doc: "other [capabilities](recipes.md#capability), each as `KIND.NAME`"},

		{Name: "clock", Type: FlagValue, Default: "false", Doc: "the real time"},
		{Name: "random", Type: FlagValue, Default: "false", Doc: "random bytes without a seed"},
	}},
	{Name: "wire", Labels: named, Within: []string{"creature"}, Repeated: true, Doc: "[where its output goes](recipes.md#wire); at most 64", Attributes: []Attribute{
		{Name: "to", Type: "creature or `root`", Required: true, Doc: "the creature that gets the output"},
		{Name: "with_content", Type: FlagValue, Default: "true", Doc: "whether the output itself is delivered"},
		{Name: "prompt", Type: TextValue, Doc: "a text to deliver, in which `{output}`, `{source}` and `{channel}` are replaced; double literal braces"},
		{Name: "when", Type: "predicate", Without: "always", Doc: "only outputs for which the predicate is true"},
		{Name: "allow_self", Type: FlagValue, Default: "false", Doc: "whether the wire may lead back to the creature itself"},
		attrDescription,
	}},
	{Name: dynamic, Labels: []string{"type"}, Within: templates, Repeated: true, Doc: "[makes blocks](recipes.md#dynamic) of a type", Attributes: []Attribute{
		{Name: "for_each", Type: "map, set or list", Required: true, Doc: "one block for each element, at most 1,024"},
		{Name: "iterator", Type: "name", Without: "the type of the block", Doc: "the name by which `content` refers to the element: `NAME.key` and `NAME.value`"},
		{Name: "labels", Type: TextsValue, Doc: "for a `wire`: a list with its name"},
	}},
	{Name: "content", Within: []string{dynamic}, Doc: "the body of each block; required", Others: "as in a block of that type"},
	{Name: "predicate", Labels: named, Repeated: true, Doc: "a condition on outputs, for wires", Attributes: []Attribute{
		{Name: "run", Type: TextValue, Doc: "the script: a JavaScript expression over `output`, `source` and `channel`, or one function of an object with these"},
		attrFile, attrTimeout, attrDescription,
	}},
	{Name: "policy", Labels: eventAndName, Repeated: true, Doc: "judges events before they happen", Attributes: []Attribute{
		{Name: "channel", Type: "channel or list", Without: "all", Doc: "on `send`, `connect` and `disconnect`: only events on these channels"},
		{Name: "creature", Type: "creature or list", Without: "all", Doc: "only events that involve one of these creatures, as sender, caller or either end"},
		{Name: "species", Type: "species or list", Without: "all", Doc: "the same for species; matching one of `creature` and `species` is enough"},
		{Name: "run", Type: TextValue, Doc: "the script: one JavaScript function of `(event, ctx)`"},
		attrFile,
		{Name: "mode", Type: ChoiceValue, Choices: []string{"validate", "mutate"}, Default: "validate", Doc: "`validate` may deny; `mutate`, on `send`, `merge` and `capability`, may also change the event"},
		{Name: "match", Type: "condition", Without: "always", Doc: "a condition on `event`, evaluated first; if it is false, the script is skipped"},
		attrTimeout,
		{Name: "on_error", Type: ChoiceValue, Choices: []string{"deny", "warn", "allow"}, Default: "deny", Doc: "the decision if the script fails or takes too long"},
		{Name: "enforce", Type: ChoiceValue, Choices: []string{"deny", "audit"}, Default: "deny", Doc: "`audit` only records what the policy would do"},
		{Name: "record", Type: ChoiceValue, Choices: []string{"hash", "original"}, Default: "hash", Doc: "on `send`: what the session keeps of a message that the policy changes, or of a creature's message that it drops"},
		{Name: "isolation", Type: ChoiceValue, Choices: []string{"none", "process"}, Default: "none", Doc: "`process` runs the script in a separate process with a memory limit; scripts of a recipe that another user could have written always run that way"},
		attrDescription,
	}},
	{Name: stopWhen, Labels: named, Repeated: true, Doc: "a condition under which the creatures of the recipe [stop](recipes.md#stop_when); a block holds when all its attributes hold, and one such block is enough", Attributes: []Attribute{
		{Name: "turns", Type: CountValue, Without: "not checked", Doc: "at least this many turns have been committed"},
		{Name: "messages", Type: CountValue, Without: "not checked", Doc: "the creatures have sent at least this many messages"},
		{Name: "tokens", Type: CountValue, Without: "not checked", Doc: "the creatures have used at least this many tokens of language models"},
		{Name: "money", Type: TextValue, Without: "not checked", Doc: "the creatures have used at least this much money for language models, in the currency of their `prices`: `\"2.50\"`"},
		{Name: "after", Type: DurationValue, Without: "not checked", Doc: "at least this much time has passed since the recipe began"},
		{Name: "match", Type: "condition", Without: "not checked", Doc: "the condition is true for `event.turns`, `event.messages`, `event.tokens`, `event.money` and `event.seconds`"},
		attrDescription,
	}},
	{Name: "recipe", Labels: named, Repeated: true, Doc: "a sub-recipe, as a part of this recipe", Others: "the value of the sub-recipe's variable of that name", Attributes: []Attribute{
		{Name: "source", Type: TextValue, Required: true, Doc: "the path of a folder with the recipe, or of its file"},
		attrForEach,
	}},
	{Name: "output", Labels: named, Repeated: true, Doc: "a value for the recipe around it, or for its users", Attributes: []Attribute{
		{Name: "value", Type: "any", Required: true, Doc: "the value"},
		{Name: "sensitive", Type: FlagValue, Default: "false", Doc: "keep the value out of messages and plans; required if the value is sensitive"},
		attrDescription,
	}},
	{Name: "moved", Repeated: true, Doc: "a new address of something that exists", Attributes: []Attribute{
		{Name: "from", Type: "address", Required: true, Doc: "the former address of a creature, a channel or a sub-recipe"},
		{Name: "to", Type: "address", Required: true, Doc: "its address in this recipe"},
	}},
	{Name: "check", Labels: named, Repeated: true, Doc: "assertions on the recipe itself", Attributes: []Attribute{attrDescription}},
	{Name: "test", Labels: named, Repeated: true, Doc: "messages, and assertions on what they lead to", Attributes: []Attribute{
		{Name: "variables", Type: "object", Without: "those of the command line", Doc: "values for variables, which take precedence over all others"},
		{Name: "expect_failures", Type: "list of references", Without: "none", Doc: "the things that have to [fail](recipes.md#expected-failures): `var.NAME`, `check.NAME`, `creature.NAME`"},
		{Name: "timeout", Type: DurationValue, Default: DefaultTestTimeout.String(), Doc: "how long its steps may take in real time, once the creatures have started, at most " + plainDuration(MaxTestTimeout)},
		attrDescription,
	}},
	{Name: "mock", Within: []string{"test"}, Repeated: true, Doc: "[canned answers](recipes.md#mocks) in place of a creature", Attributes: []Attribute{
		{Name: "creature", Type: "creature", Required: true, Doc: "the creature to replace; with `for_each`, one instance or all of them"},
	}},
	{Name: "answer", Within: []string{"mock"}, Repeated: true, Doc: "what it does with a delivery; the first that matches is used", Attributes: []Attribute{
		{Name: "channel", Type: "channel", Without: "any, and its inbox", Doc: "only deliveries from this channel"},
		{Name: "payload", Type: TextValue, Without: "any", Doc: "only deliveries with this payload"},
		{Name: "json", Type: "any", Without: "any", Doc: "only deliveries with this payload, as JSON"},
		{Name: "reply", Type: "any", Doc: "the reply to a request: a text, or any other value as JSON"},
		{Name: "send", Type: "object", Doc: "messages by alias: texts, or other values as JSON"},
		{Name: "output", Type: "any", Doc: "its output, which its wires deliver: a text, or any other value as JSON"},
		{Name: "fail", Type: TextValue, Doc: "fail the turn with this error"},
	}},
	{Name: "advance", Within: []string{"test"}, Repeated: true, Doc: "moves the test's [clock](recipes.md#the-clock), in the order of the blocks", Attributes: []Attribute{
		{Name: "by", Type: DurationValue, Required: true, Doc: "how far: timers that come due on the way fire one after the other"},
	}},
	{Name: "decide", Within: []string{"test"}, Repeated: true, Doc: "answers everything that [waits for approval](../how-to/approve.md) then, in the order of the blocks; the test fails if nothing waits", Attributes: []Attribute{
		{Name: "decision", Type: ChoiceValue, Choices: []string{"approve", "deny"}, Required: true, Doc: "the answer"},
		{Name: "policy", Type: TextValue, Doc: "only to questions of the policy with this name"},
		{Name: "reason", Type: TextValue, Doc: "why, for the creature"},
	}},
	{Name: "send", Within: []string{"test"}, Repeated: true, Doc: "messages to send, in the order of the blocks; each is sent after everything before it has been handled. Exactly one of `payload`, `json` and `lines` is required", Attributes: []Attribute{
		{Name: "channel", Type: "channel", Required: true, Doc: "the channel to send on"},
		{Name: "payload", Type: TextValue, Doc: "one message"},
		{Name: "json", Type: "any", Doc: "one message, as JSON"},
		{Name: "lines", Type: TextsValue, Doc: "one message for each"},
		{Name: "headers", Type: TextMapValue, Doc: "the headers of each message"},
	}},
	{Name: "assert", Within: []string{"test", "check"}, Repeated: true, Doc: "a condition; at least one is required, except in a test with `expect_failures`", Attributes: []Attribute{
		{Name: "condition", Type: "condition", Required: true, Doc: "an expression, in a test on `result`, in a check on the recipe's values and `graph`"},
		{Name: "error_message", Type: TextValue, Doc: "the message if it is false"},
	}},
}

func limitAttributes() []Attribute {
	var out []Attribute
	defaults := reflect.ValueOf(abi.DefaultLimits)
	for i, info := range abi.LimitTable {
		a := Attribute{Name: info.Name, Doc: info.Doc, Type: CountValue, Default: fmt.Sprint(defaults.Field(i))}
		switch info.Unit {
		case "bytes":
			a.Type = SizeValue
		case "time":
			a.Type = DurationValue
		}
		out = append(out, a)
	}
	return out
}

func restartAttributes() []Attribute {
	d := deploy.DefaultRestart
	return []Attribute{
		{Name: "mode", Type: ChoiceValue, Choices: []string{"on_failure", "never", "always"}, Default: d.Mode.String(),
			Doc: "`never`: a failed delivery becomes a dead letter at once; `always`: every delivery also gets a fresh instance"},
		{Name: "attempts", Type: CountValue, Default: fmt.Sprint(d.Attempts), Doc: "how many times a delivery is tried before it becomes a dead letter"},
		{Name: "max", Type: CountValue, Default: fmt.Sprint(d.Max), Doc: "more failed turns than this within the window quarantine the creature"},
		{Name: "within", Type: DurationValue, Default: plainDuration(d.Within), Doc: "the time window for `max`"},
		{Name: "backoff", Type: DurationValue, Default: plainDuration(d.Backoff), Doc: "the pause before the second attempt; it doubles each time, with jitter"},
		{Name: "backoff_max", Type: DurationValue, Default: plainDuration(d.BackoffMax), Doc: "the longest pause"},
	}
}

func plainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
