package observe

import "github.com/seed47132306/terrarium/engine/journal"

// kindSet is a set of kinds of events, one bit for each.
type kindSet uint64

// It does not compile if there are more kinds than bits.
const _ = uint(64 - journal.NumEventKinds)

// setOf is the set of one kind. For one that does not exist it may be empty.
func setOf(k journal.EventKind) kindSet { return 1 << k }
