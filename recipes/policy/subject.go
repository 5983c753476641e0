package policy

import (
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// subject is the event to judge: a message or another event. One of the two is set.
type subject struct {
	send  *deploy.SendEvent
	event *deploy.PolicyEvent
}

// fixed are the time and the randomness of a decision.
func (s *subject) fixed() (now int64, seed uint64) {
	if s.send != nil {
		return s.send.Time, s.send.Seed
	}
	return s.event.Time, s.event.Seed
}

// surroundings are the data that a script can read besides the event.
func (s *subject) surroundings() *deploy.Surroundings {
	if s.send != nil {
		return &s.send.Surroundings
	}
	return &s.event.Surroundings
}

func (s *subject) kind() journal.PolicyKind {
	if s.send != nil {
		return journal.JudgeSend
	}
	return s.event.Kind
}
