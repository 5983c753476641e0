// Package policy runs the policies of a recipe: JavaScript functions that
// judge what is about to happen to a deployment.
//
// A policy is one function of an event. It answers undefined for no objection,
// or one of allow(), deny(reason), warn(reason), drop(reason), patch({…}),
// restart(reason) and quarantine(reason), as far as they go with the event;
// anything else, an exception, and running out of time are errors, which deny
// unless the policy was declared otherwise. Policies that mutate go first, in
// the order of their declaration, then all that validate; every objection is
// collected (judgement.go).
//
// A decision depends on the event (event.go, fields.go) and on what ctx shows
// (context.go): the graph, and what the policy remembers in it. Time is the
// event's, random numbers are seeded by it, both are read-only, and a policy has
// nowhere else to keep anything: it is a single function, all objects that scripts
// share are frozen, or made good before the next call (isolate.go, pristine). So a
// decision is the same whichever runtime makes it.
//
// A policy cannot stop the program by a loop, by recursion, or by the built-in
// functions that do a lot of work in one step; these are bounded, and those
// that cannot be are taken away (eval, typed arrays, big integers, proxies).
// What remains is memory: a script can use as much as it can fill until its
// time is up. A policy may therefore be run in a process of its own (process.go,
// serve.go), which has a memory limit, and is killed and replaced if it does not
// answer. Other scripts are trusted as far as their operator is.
package policy
