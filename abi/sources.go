package abi

// Source numbers something that a creature reads with read and size.
type Source int32

// The sources. Their content is fixed for the length of a turn, except for
// [SourceResult], [SourceError] and [SourceFailure], which hostcalls set.
const (
	SourcePayload           Source = 0
	SourceChannel           Source = 1
	SourceSender            Source = 2
	SourceMessageID         Source = 3
	SourceHeaders           Source = 4
	SourceDetail            Source = 5
	SourceConfig            Source = 6
	SourceAwarenessJSON     Source = 7
	SourceAwarenessMarkdown Source = 8
	SourceResult            Source = 9
	SourceError             Source = 10
	SourceSelf              Source = 11
	SourceAwarenessRevision Source = 12
	SourceFailure           Source = 13
)

// SourceInfo describes one source.
type SourceInfo struct {
	Source Source
	Name   string // lower case, words joined by underscores
	Doc    string
}

// Sources is the table of sources in numeric order.
var Sources = []SourceInfo{
	{SourcePayload, "payload", "the bytes of the delivery"},
	{SourceChannel, "channel", "the listen alias of the message's channel, or the creature's own name for a direct message"},
	{SourceSender, "sender", "the sender's name when the message was sent; empty when it came from outside"},
	{SourceMessageID, "message_id", "the id of the message, unique everywhere"},
	{SourceHeaders, "headers", "name NUL value NUL, repeated; empty when there are none"},
	{SourceDetail, "detail", "the details of this kind of delivery, as JSON"},
	{SourceConfig, "config", "the creature's configuration, a JSON object"},
	{SourceAwarenessJSON, "awareness_json", "the awareness document as JSON"},
	{SourceAwarenessMarkdown, "awareness_markdown", "the awareness document as Markdown"},
	{SourceResult, "result", "the result of the last hostcall that has one: config, state_get, state_list, tool"},
	{SourceError, "error", "the text of the last failed hostcall, with a remedy"},
	{SourceSelf, "self", "the creature's own name"},
	{SourceAwarenessRevision, "awareness_revision", "the revision of the awareness document, as decimal text"},
	{SourceFailure, "failure", "the last failed hostcall in one line: its name, the text of error, and in parentheses the code, as in send: TEXT (denied)"},
}

// Kind says why creature_handle is called.
type Kind int32

// The kinds of delivery. A creature returns 0 for a kind it does not know.
const (
	KindMessage      Kind = 1
	KindStart        Kind = 2
	KindOutput       Kind = 3
	KindTimer        Kind = 4
	KindResult       Kind = 5
	KindGraphChanged Kind = 6
	KindRequest      Kind = 7
)

// KindInfo describes one kind of delivery.
type KindInfo struct {
	Kind Kind
	Name string
	Doc  string
}

// Kinds is the table of kinds in numeric order.
var Kinds = []KindInfo{
	{KindMessage, "message", "a message on a channel or a direct message"},
	{KindStart, "start", "once in a creature's life, before every other delivery"},
	{KindOutput, "output", "another creature's output, over a wire"},
	{KindTimer, "timer", "a timer that this creature set"},
	{KindResult, "result", "the result of a request or an outbound call of this creature"},
	{KindGraphChanged, "graph_changed", "the awareness document has a new revision"},
	{KindRequest, "request", "a direct message whose sender waits for a reply"},
}

// String returns the name of the kind.
func (k Kind) String() string {
	if k >= 1 && int(k) <= len(Kinds) {
		return Kinds[k-1].Name
	}
	return "unknown"
}

// Level is the level of a log line.
type Level int32

// The log levels.
const (
	LevelDebug Level = 0
	LevelInfo  Level = 1
	LevelWarn  Level = 2
	LevelError Level = 3
)

// LevelNames holds the names of the levels, by number.
var LevelNames = []string{"debug", "info", "warn", "error"}

// String returns the name of the level.
func (l Level) String() string {
	if l >= 0 && int(l) < len(LevelNames) {
		return LevelNames[l]
	}
	return "unknown"
}

// Feature numbers an optional part of the contract. A guest checks for it with
// the function feature. A function of an absent feature returns [Unsupported];
// it can always be imported.
type Feature int32

// The features of version 1.
const (
	FeatureTimers    Feature = 0
	FeatureRequests  Feature = 1
	FeatureTools     Feature = 2
	FeatureHTTP      Feature = 3
	FeatureAwareness Feature = 4
	FeatureFuel      Feature = 5
)

// FeatureInfo describes one feature.
type FeatureInfo struct {
	Feature Feature
	Name    string
	Doc     string
}

// Features is the table of features in numeric order.
var Features = []FeatureInfo{
	{FeatureTimers, "timers", "timer_set and timer_cancel"},
	{FeatureRequests, "requests", "request and reply"},
	{FeatureTools, "tools", "tool, the group tools"},
	{FeatureHTTP, "http", "http, outbound requests"},
	{FeatureAwareness, "awareness", "the awareness documents and the kind graph_changed"},
	{FeatureFuel, "fuel", "fuel_left returns the fuel that is left; without this feature it returns -1"},
}

// AllChannels is the channel handle that stands for every channel the creature
// may send on.
const AllChannels int32 = -1
