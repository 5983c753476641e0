// Package conformance holds the suites that creatures, hosts and stores must
// pass, with their cases as data.
//
// [RunCreature] runs one creature through the deliveries of a [Case] and returns the
// transcript of all its observable actions. Linear memory is a cache, so the transcript
// must be the same whether the creature keeps its instance between turns or gets a fresh
// one for each; [CheckCreature] runs the creature in both ways, and compares the
// transcripts with the one that the case expects.
//
// Package creatures tests modules without knowing anything about them, package hosts
// tests hosts through an adapter, and package stores tests session stores. Package
// requirements lists the rules that the suites prove, and package report describes the
// outcome. The command terrarium conformance runs the suites for creatures, hosts and
// stores.
//
// The cases of the creatures that ship with terrarium are in
// testdata/creatures. Package hostile has modules that attack their host, with
// the required outcomes. The checks of stores are in engine/storetest, beside the
// interface that they test.
package conformance
