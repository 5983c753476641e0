package main

import (
	"errors"

	"github.com/seed47132306/terrarium/engine"
)

// maxDeniedShown is how many lines of an input that policies deny are told one by
// one: enough to see who denies and why, and not so many as to bury everything else.
const maxDeniedShown = 3

// tellDenied counts the line that was just read as denied, and tells by whom.
func (in *input) tellDenied(r *reporter, err error) {
	if in.denied.Add(1) > maxDeniedShown && !r.x.f.verbose {
		return
	}
	var refused *engine.RefusedMessage
	if errors.As(err, &refused) {
		r.say("line %d of %s was %s: %v", in.lines.Load(), in.name, refused.Effect, refused)
		return
	}
	r.say("line %d of %s was denied: %v", in.lines.Load(), in.name, err)
}

// tellAllDenied tells how many lines were denied, if not each was told.
func (in *input) tellAllDenied(r *reporter) {
	if n := in.denied.Load(); n > maxDeniedShown && !r.x.f.verbose {
		r.say("policies denied %s of %s in all; --verbose tells each", count(n, "line"), in.name)
	}
}
