package main

import (
	"errors"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// maxDeniedShown is how many denied lines of an input are reported one by one: enough
// to see which policies deny them and why, without burying everything else.
const maxDeniedShown = 3

// tellDenied counts the line that was just read as denied, and reports the policy.
func (in *input) tellDenied(r *reporter, err error) {
	if in.denied.Add(1) > maxDeniedShown && !r.x.f.verbose {
		return
	}
	var refused *deploy.RefusedMessage
	if errors.As(err, &refused) {
		r.say("line %d of %s was %s: %v", in.Read.Load(), in.Name, refused.Effect, refused)
		return
	}
	r.say("line %d of %s was denied: %v", in.Read.Load(), in.Name, err)
}

// tellAllDenied reports how many lines were denied, unless each was reported.
func (in *input) tellAllDenied(r *reporter) {
	if n := in.denied.Load(); n > maxDeniedShown && !r.x.f.verbose {
		r.say("policies denied %s of %s in total; --verbose shows each of them", count(n, "line"), in.Name)
	}
}
