// Package capability is the seam between an engine and what creatures can reach outside of
// it. HTTP is one capability (package httpcap); a program can add others of its own, in Go,
// and give them to an engine with its options.
//
// A recipe declares a capability in a block with settings, and grants it to creatures by
// name. What a creature requests is an effect of its turn: the engine logs it with the turn,
// carries it out after the turn is as durable as its graph promises, and delivers the result
// as one delivery of the kind result. If the process ends before the result is in the log,
// the request is carried out again, with the same key. So a request happens at least once,
// its result is handled once, and a recorded session can be replayed without the capability.
//
// Limits that all capabilities share (how many requests at a time, how many a second, how
// often to try again) are kept by the engine; see [Limits].
package capability

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// Kind is a kind of capability. Its methods may be called from any goroutine.
type Kind interface {
	// Name identifies the kind in recipes, policies and logs: lower-case letters, digits
	// and underscores. It must never change.
	Name() string
	// Settings describe the attributes of the block that declares a capability.
	Settings() []Setting
	// Open checks settings and returns what they allow. The settings are a JSON object
	// with the attributes of the block, of the types in Settings. It must not reach
	// outside: it is also called to check a recipe. Errors should be [abi.Error].
	Open(settings json.RawMessage) (Grant, error)
}

// SettingType is the type of a setting.
type SettingType string

// The types, with their form in JSON.
const (
	Text     SettingType = "text"            // a string
	Texts    SettingType = "list of texts"   // an array of strings
	TextMap  SettingType = "object of texts" // an object of strings
	Flag     SettingType = "true or false"   // a boolean
	Count    SettingType = "whole number"    // a number from 0
	Size     SettingType = "size"            // a number of bytes
	Duration SettingType = "duration"        // a number of nanoseconds
)

// Setting describes an attribute.
type Setting struct {
	Name     string
	Type     SettingType
	Required bool
	Choices  []string // of a text; nil: any
	Default  string   // the value without the attribute, as in a recipe; may be empty
	Without  string   // the same in words
	// Sensitive allows sensitive values. They are not stored: a session that is resumed
	// without its recipe lacks them, and its requests wait.
	Sensitive bool
	Doc       string // in Markdown
}

// Grant is a capability as a recipe has declared it. Creatures that it is granted to share
// it. Its methods may be called from any goroutine.
type Grant interface {
	// Check refuses a request that the capability does not allow or that is malformed. It is
	// called during the turn of the creature, which gets the error as the result of its
	// call, and again before each attempt. It must be fast, must not reach outside, and must
	// depend on the request and the settings only. Errors should be [abi.Error].
	Check(r Request) error
	// View is the request as policies and operators see it: an object of values that encode
	// as JSON. It must not contain sensitive settings.
	View(r Request) map[string]any
	// Amend returns the request with the given members of its view replaced, for policies
	// that change requests. The result is checked again.
	Amend(r Request, members json.RawMessage) (Request, error)
	// Do executes the request, once. It ends when ctx ends, within Limits.Timeout. If it
	// is interrupted because the engine closes, its result is not used.
	Do(ctx context.Context, call Call) Result
	// Limits are those that the engine keeps. They do not change.
	Limits() Limits
	// Allows says what the capability allows, for people: one line for each.
	Allows() []string
	// Warnings are what is dangerous about the settings, for people. They may be nil.
	Warnings() []Warning
}

// Warning is something dangerous about settings.
type Warning struct {
	Setting string // the name of the attribute, or empty
	Text    string // a sentence
	Remedy  string // a sentence
}

// Request is what a creature requests. The engine keeps the bytes.
type Request struct {
	// Head is the part of the request with a form that the capability prescribes, without
	// NUL. It is empty for a request that a creature has made with the function request.
	Head []byte
	Body []byte
}

// Call is a request to be carried out.
type Call struct {
	Request
	// Key is the same whenever the request is carried out, and different for every other
	// request of every session. A service that knows the key can recognise repetitions.
	Key string
	// Attempt counts from 1, and begins again after the engine was restarted.
	Attempt int
	// Creature is the name of the creature, for logs.
	Creature string
}

// Result is the result of an attempt.
type Result struct {
	Code abi.Code
	// Text says what happened and what to do, if Code is not OK.
	Text string
	// Payload and Headers are delivered to the creature. With a code other than OK the
	// creature gets Text instead of Payload.
	Payload []byte
	Headers map[string]string
	Status  int // a number that the capability defines; 0 for none
	// Again says that another attempt may succeed: not before After, if Limits allow it.
	Again bool
	After time.Duration
}

// Failure is the result of an attempt that failed.
func Failure(code abi.Code, text string) Result { return Result{Code: code, Text: text} }

// Limits bound what the requests of a grant use together.
type Limits struct {
	Concurrency int     // attempts at the same time; 0: [DefaultConcurrency]
	Rate        float64 // attempts a second on average, and as many at once; 0: not bounded
	// Timeout bounds an attempt; 0: [DefaultTimeout].
	Timeout time.Duration
	// Retries is how often a request is tried again if its result says that this may help,
	// and Backoff the pause before the first time, which doubles up to BackoffMax.
	Retries             int
	Backoff, BackoffMax time.Duration
	// DeadLetter says that a request that has failed for good becomes a dead letter of its
	// creature. Otherwise the creature gets the failed result.
	DeadLetter bool
}

// Defaults of [Limits].
const (
	DefaultConcurrency = 64
	DefaultTimeout     = 30 * time.Second
	DefaultBackoff     = 500 * time.Millisecond
	DefaultBackoffMax  = 30 * time.Second
)

// Pause is the pause after a failed attempt, counted from 1: at least what the result
// demands, as far as that is within BackoffMax.
func (l *Limits) Pause(attempt int, after time.Duration) time.Duration {
	pause, most := l.Backoff, l.BackoffMax
	if pause <= 0 {
		pause = DefaultBackoff
	}
	if most <= 0 {
		most = DefaultBackoffMax
	}
	for i := 1; i < attempt && pause < most; i++ {
		pause *= 2
	}
	return min(max(pause, after), most)
}
