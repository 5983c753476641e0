// Package policy runs the policies of a recipe: JavaScript functions that judge events of
// a deployment before they happen.
//
// A policy is one function of an event. It returns undefined if it does not object, or one
// of allow(), deny(reason), warn(reason), drop(reason), patch({…}), restart(reason) and
// quarantine(reason), if the event allows that answer. Any other value, an exception and a
// timeout are errors. An error denies the event, unless the policy declares otherwise.
// Policies in the mode mutate run first, in the order of their declaration, then all that
// validate; all objections are collected (judgement.go).
//
// A decision depends on the event (event.go, fields.go) and on ctx (context.go): the
// graph, and the state of the policy in the graph. The time is the event's, and random
// numbers are seeded by the event. The event is read-only. A policy can keep data only in
// ctx.state, because it is a single function, and all objects that scripts share are
// frozen, or restored before the next call (isolate.go, pristine). So a decision is the
// same in every runtime.
//
// A policy cannot stop the program by a loop, by recursion, or by built-in functions that
// do a lot of work in one step. These functions are bounded, or removed if that is not
// possible (eval, typed arrays, big integers, proxies). Memory is the exception: a script
// can fill memory until its time is up. A policy can therefore run in a separate process
// (process.go, serve.go) with a memory limit, which is killed and replaced if it does not
// answer. A script that runs in the process of the engine is trusted as much as the
// operator.
package policy
