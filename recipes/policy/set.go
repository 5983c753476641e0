package policy

import (
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Mode says what a policy may do.
type Mode uint8

// The modes.
const (
	Validate Mode = iota // deny a message
	Mutate               // also change or drop it
)

// String returns "validate" or "mutate".
func (m Mode) String() string { return [...]string{"validate", "mutate"}[m] }

// OnError says how the failure of a policy counts.
type OnError uint8

// The values of OnError.
const (
	DenyOnError  OnError = iota // the failure is a denial
	WarnOnError                 // the failure is a warning
	AllowOnError                // the failure is ignored
)

// The bounds of a policy's time for one event. It is wall-clock time, so the default
// leaves room for a busy machine.
const (
	DefaultTimeout = 250 * time.Millisecond
	MaxTimeout     = time.Second
)

// Policy is one policy.
type Policy struct {
	Name   string
	On     journal.PolicyKind // the event; empty means send
	Mode   Mode
	Source string // one JavaScript function: (event, ctx) => …
	File   string // where Source is, for errors and verdicts
	Line   int    // of its first line; 0 means 1
	// Channels are the addresses of the channels that it judges; nil means all.
	Channels []string
	// Creatures and Species limit it to events that involve creatures with these
	// addresses or of these species; nil for both means all.
	Creatures, Species []string
	// Match skips the script if it returns false; nil means that the script always runs.
	// It may be called from any goroutine. MatchEvent is the same for events other than
	// send.
	Match      func(*deploy.SendEvent) (bool, error)   `json:"-"`
	MatchEvent func(*deploy.PolicyEvent) (bool, error) `json:"-"`
	Timeout    time.Duration                           // 0 means DefaultTimeout, and at most MaxTimeout is used
	OnError    OnError
	Audit      bool // only record its decision
	// Original logs messages that the policy changes, or messages of creatures that it
	// drops, instead of a hash of them.
	Original bool
	// Process runs the script in another process; see [Options].
	Process bool
}

// Options say how policies are run.
type Options struct {
	// Command starts a process that calls [Serve]: an executable and its arguments. It is
	// required if a policy runs in a separate process.
	Command []string
	// Memory bounds such a process, in bytes beyond what it needs to start; 0 means
	// DefaultMemory.
	Memory int64
}

// Set is the policies of one deployment. It implements [deploy.Policy]; its
// methods may be called from any goroutine.
type Set struct {
	policies []*compiled // mutating policies first
	// byChannel has the policies on send for each channel that a policy names, and
	// everywhere those for all other channels, both in the order of policies.
	byChannel  map[string][]*compiled
	everywhere []*compiled
	byKind     map[journal.PolicyKind][]*compiled // on other events
	*pool
	// children run the policies with Process. It is nil if there are none, or if no
	// Processes have been given.
	children *children
	options  Options
}

var _ deploy.Policy = (*Set)(nil)

// New compiles policies. It reports every invalid script.
func New(policies []Policy, o Options) (*Set, []*ScriptError) {
	s := &Set{byKind: map[journal.PolicyKind][]*compiled{}, options: o}
	var faults []*ScriptError
	for _, mode := range []Mode{Mutate, Validate} {
		for _, p := range policies {
			if p.Mode != mode {
				continue
			}
			c, err := compile(p, len(s.policies))
			if err != nil {
				faults = append(faults, err)
				continue
			}
			s.policies = append(s.policies, &c)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	s.pool = newPool(len(s.policies))
	s.index()
	return s, nil
}

// In returns the set with processes, owned by p, for its policies that have Process set. In
// a set without processes, these policies fail.
func (s *Set) In(p *Processes) *Set {
	if !slices.ContainsFunc(s.policies, func(p *compiled) bool { return p.Process }) {
		return s
	}
	out := *s
	out.children = newChildren(p, s.options, s.policies)
	return &out
}

// index sorts the policies by channel, so that a message costs nothing for policies that
// do not judge it.
func (s *Set) index() {
	s.byChannel = map[string][]*compiled{}
	for _, p := range s.policies {
		for channel := range p.channels {
			if p.On == journal.JudgeSend {
				s.byChannel[channel] = nil
			}
		}
	}
	for _, p := range s.policies {
		if p.On != journal.JudgeSend {
			s.byKind[p.On] = append(s.byKind[p.On], p)
			continue
		}
		if p.channels != nil {
			for channel := range p.channels {
				s.byChannel[channel] = append(s.byChannel[channel], p)
			}
			continue
		}
		s.everywhere = append(s.everywhere, p)
		for channel := range s.byChannel {
			s.byChannel[channel] = append(s.byChannel[channel], p)
		}
	}
}

func (s *Set) judging(channel string) []*compiled {
	if list, ok := s.byChannel[channel]; ok {
		return list
	}
	return s.everywhere
}

// JudgesSend implements [deploy.Policy].
func (s *Set) JudgesSend(channel string) bool {
	return len(s.judging(channel)) > 0
}

// Judges implements [deploy.Policy].
func (s *Set) Judges(kind journal.PolicyKind) bool { return len(s.byKind[kind]) > 0 }
