// Package policy runs the policies of a recipe: JavaScript functions that
// judge what the members of a deployment are about to do.
//
// A policy is one function of an event. It answers undefined for no objection,
// or one of allow(), deny(reason), warn(reason), drop(reason) and patch({…});
// anything else, an exception, and running out of time are errors, which deny
// unless the policy was declared otherwise. Policies that mutate go first, in
// the order of their declaration, then all that validate; every objection is
// collected.
//
// A decision depends only on the event. Time is the event's, random numbers
// are seeded by it, the event is read-only, and a policy has nowhere to
// keep anything: it is a single function, and all objects that scripts share
// are frozen. So a decision is the same whichever runtime makes it.
//
// A policy cannot stop the program by a loop, by recursion, or by the built-in
// functions that do a lot of work in one step; these are bounded, and those
// that cannot be are taken away (eval, typed arrays, big integers, proxies).
// What remains is memory: a script can use as much as it can fill until its
// time is up. Scripts are therefore trusted as far as their operator is; this
// package does not make it safe to run a stranger's.
package policy
