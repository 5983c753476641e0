// Package conformance holds the suites that creatures, hosts and stores have to
// pass, with their cases as data.
//
// [RunCreature] runs one creature through the deliveries of a [Case] and
// returns the transcript of everything it did that others can notice. Linear
// memory is a cache, so the transcript has to be the same whether the creature
// keeps its instance between turns or gets a fresh one for each; [CheckCreature]
// runs both and compares them with the transcript that the case expects.
//
// The cases of the creatures that ship with terrarium are in testdata/creatures.
// Package hostile, below, has modules that attack their host and what must
// become of them. The suite for stores is engine/storetest, beside the interface that it is
// about.
package conformance
