// Package capability is the interface between an engine and what creatures can reach outside
// of it. HTTP is one capability (package httpcap). A Go program can add others, and pass them
// to an engine in its options.
//
// A recipe declares a capability in a block with settings, and grants it to creatures by
// name. A request is an effect of the creature's turn. The engine logs the request with the
// turn, executes it once the turn is as durable as its graph promises, and delivers the
// result as one delivery of the kind result. If the process ends before the result is in the
// log, the request is executed again, with the same key. A request is therefore executed at
// least once, its result is handled once, and a recorded session can be replayed without the
// capability.
//
// For every capability, the engine bounds the requests at a time, the requests per
// second, and the retries; see [Limits].
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
	// Settings describes the attributes of the block that declares a capability.
	Settings() []Setting
	// Open checks settings and returns the grant that they describe. The settings are a
	// JSON object with the attributes of the block, of the types in Settings. Open must
	// not reach outside, because it is also called to check a recipe. Errors should be
	// [abi.Error].
	Open(settings json.RawMessage) (Grant, error)
}

// SettingType is the type of a setting.
type SettingType string

// The types of settings, with their form in JSON.
const (
	Text     SettingType = "text"            // a string
	Path     SettingType = "path"            // a string: an absolute path; recipes may have one relative to their folder
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
	Without  string   // describes in words what happens without the attribute, if there is no Default
	// Sensitive allows sensitive values. They are not stored: if a session is resumed
	// without its recipe, they are missing, and its requests wait. The value of a sensitive
	// text has to be sensitive. So does an entry of a map if its name is that of a header
	// that carries a secret, such as authorization. A recipe with another value is refused.
	Sensitive bool
	Doc       string // in Markdown
}

// Grant is a capability as a recipe declares it. All creatures to which it is granted share
// it. Its methods may be called from any goroutine. A method that panics has failed, and so has
// the request; the process continues.
//
// A Grant that keeps something between requests, such as connections, should have the method
// Close of io.Closer. Close is called after the last creature has lost the grant, perhaps
// some time later, and when the engine closes. It may be called twice; its error is not
// used. Grants that were opened only to check a recipe are not closed.
type Grant interface {
	// Check returns an error for a request that is malformed or that the capability does
	// not allow. It is called during the creature's turn, and again before each attempt.
	// During the turn, the creature gets the error as the result of its hostcall. Check
	// must be fast, must not reach outside, and must depend only on the request and the
	// settings. Errors should be [abi.Error].
	Check(r Request) error
	// View returns the request as policies and operators see it: an object of values that
	// encode as JSON. It must not contain sensitive settings. If it cannot be encoded, policies
	// cannot judge the request, and it fails.
	View(r Request) map[string]any
	// Amend returns the request with some members of its view replaced by the given ones,
	// for policies that change requests. The engine passes the result to Check.
	Amend(r Request, members json.RawMessage) (Request, error)
	// Do executes the request once. It must return soon after ctx ends, which is at the
	// latest after Limits.Timeout. If ctx ends because the engine closes, the result is
	// not used.
	Do(ctx context.Context, call Call) Result
	// Limits returns the limits that the engine enforces. They must not change.
	Limits() Limits
	// Allows describes to a person what the capability allows, one item per line.
	Allows() []string
	// Warnings tells a person what is dangerous about the settings. It may return nil.
	Warnings() []Warning
}

// Meter is implemented by a [Grant] whose requests use up budgets. The engine keeps them: it
// records what each creature has used in the session, so that this survives restarts, merges
// and splits. An attempt that does not fit into the budgets is not made; the creature gets a
// result with the code limit.
type Meter interface {
	// Budgets are the budgets, with one entry for a unit. They do not change.
	Budgets() []Budget
	// Forecast returns the most that an attempt is expected to use, by unit. This amount is
	// reserved before the attempt, and [Result.Used] replaces it after. A reservation whose
	// attempt is interrupted stays, because the attempt may have been made. The result must
	// depend only on the request and the settings.
	Forecast(r Request) map[string]int64
}

// Budget bounds what requests use of a unit.
type Budget struct {
	Unit     string
	Creature int64 // of each creature; 0: not bounded
	Graph    int64 // of all creatures of a graph, including removed ones; 0: not bounded
}

// Warning describes a danger of some settings.
type Warning struct {
	Setting string // the name of the attribute, or empty
	Text    string // a sentence
	Remedy  string // a sentence
}

// Request is a request of a creature. Its bytes belong to the engine, and must not be
// modified.
type Request struct {
	// Head describes the request, in a form that the capability defines, without NUL. It
	// is empty for a request that a creature has made with the function request.
	Head []byte
	Body []byte
}

// Call is an attempt to execute a request.
type Call struct {
	Request
	// Key is the same for all attempts of a request, and different for all other requests
	// of every session. A service can use it to recognize repetitions.
	Key string
	// Attempt counts from 1. It starts over when the engine is restarted.
	Attempt int
	// Creature is the name of the creature, for logs.
	Creature string
}

// Result is the result of an attempt.
type Result struct {
	Code abi.Code
	// Text describes what happened and what to do, if Code is not OK. The engine shortens a
	// text of more than 4 KiB.
	Text string
	// Payload and Headers are delivered to the creature. If Code is not OK, the creature
	// gets Text instead of Payload.
	Payload []byte
	Headers map[string]string
	Status  int // a number that the capability defines; 0 for none
	// Used is what the attempt has used, by unit, for a [Meter].
	Used map[string]int64
	// Again reports that another attempt may succeed. The engine makes one if Limits allow
	// it, but not before After has passed.
	Again bool
	After time.Duration
}

// Failure returns the result of a failed attempt.
func Failure(code abi.Code, text string) Result { return Result{Code: code, Text: text} }

// Limits bound the requests of all creatures that share a grant.
type Limits struct {
	Concurrency int     // attempts at the same time; 0: [DefaultConcurrency]
	Rate        float64 // attempts per second on average, and how many may come at once; 0: not bounded
	// Timeout bounds an attempt; 0: [DefaultTimeout].
	Timeout time.Duration
	// Retries is the maximum number of further attempts of a request; see Result.Again.
	// Backoff is the pause before the first of them, which doubles up to BackoffMax.
	Retries             int
	Backoff, BackoffMax time.Duration
	// DeadLetter makes the result of a request a dead letter of its creature if the last
	// attempt has failed. Otherwise the creature gets the failed result.
	DeadLetter bool
}

// Defaults of [Limits].
const (
	DefaultConcurrency = 64
	DefaultTimeout     = 30 * time.Second
	DefaultBackoff     = 500 * time.Millisecond
	DefaultBackoffMax  = 30 * time.Second
)

// Pause returns the pause after a failed attempt, counted from 1. It is at least after, which
// the result requests, but never longer than BackoffMax.
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
