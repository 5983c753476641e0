package storetest

// Check is a check of a store. Checks are independent of each other, and may run at the same
// time.
type Check struct {
	Name   string   // unique, such as "append/order"; stable
	About  string   // what it proves, as a sentence
	Proves []string // numbers of rules
	run    func(t T, open Opener)
}

// Run runs the check on a store in new directories.
func (c *Check) Run(t T, open Opener) { c.run(t, open) }

// Checks returns all checks, the simple ones first.
func Checks() []Check {
	return []Check{
		{"create/several", "Stores that are created together exist together, each with its first record.", []string{"STORE-D4", "STORE-R2"}, createSeveral},
		{"create/fails", "If one of several stores cannot be created, none is.", []string{"STORE-D4"}, createFails},
		{"append/every-field", "Every field of an event is read as it was written, byte for byte.", []string{"STORE-L2"}, appendEveryField},
		{"append/order", "Events are read in the order in which they were written, each once.", []string{"STORE-L2", "STORE-L4"}, appendOrder},
		{"append/whole", "A reader beside the writer never sees a part of a record.", []string{"STORE-L1"}, appendWhole},
		{"append/close-writes", "Closing a store writes what is queued.", []string{"STORE-D3", "STORE-L2"}, closeWrites},
		{"live/upsert", "A row replaces the earlier one with the same key, and survives a restart.", []string{"STORE-L3", "STORE-R1"}, upsert},
		{"live/last-wins", "Of many rows with one key the last is kept.", []string{"STORE-L3"}, lastWins},
		{"live/drop", "What a record drops is removed, and nothing else.", []string{"STORE-L3", "STORE-R1"}, liveDrop},
		{"live/dead-letters", "Dead letters are read in pages, even after one that was dropped.", []string{"STORE-L3"}, deadLetters},
		{"live/last-time", "The time of the last event survives a restart.", []string{"STORE-R1"}, lastTime},
		{"messages/ranges", "Messages of a channel are read by their numbers, and nothing else.", []string{"STORE-M1"}, messageRanges},
		{"messages/many", "Long channels are read in pages before and after a restart, a split and a merge.", []string{"STORE-M1", "STORE-G2"}, manyMessages},
		{"history/filters", "A query selects the events that meet all of its restrictions.", []string{"STORE-H1"}, historyFilters},
		{"history/pages", "Pages of any size together have every event once, in order.", []string{"STORE-H1"}, historyPages},
		{"history/own", "What a session wrote itself can be read after any mark, before and after its end.", []string{"STORE-H1", "STORE-G4"}, historyOwn},
		{"history/default-limit", "Without a limit, 1,000 events are returned.", []string{"STORE-H1"}, defaultLimit},
		{"history/unknown", "Unknown sessions and events are not found.", []string{"STORE-H2"}, unknown},
		{"restart/continues", "A session continues after every restart, with its history and state, and its new events get a new origin.", []string{"STORE-R1", "STORE-R3"}, reopen},
		{"restart/sessions", "A directory lists its sessions, and which of them are live.", []string{"STORE-R2", "STORE-G4"}, sessions},
		{"cut/split-merge", "After splits and merges the history has every event once, in order.", []string{"STORE-G2", "STORE-G4"}, cutSplitMerge},
		{"cut/live-rows", "State, cursors, producers and dead letters go where their creatures and channels go.", []string{"STORE-G3"}, cutLiveRows},
		{"cut/first", "Every child begins with its own first record, under a new origin.", []string{"STORE-G1", "STORE-R3"}, cutFirst},
		{"cut/lineage", "The lineage names every ancestor, generation by generation.", []string{"STORE-G5"}, cutLineage},
		{"cut/dead-letters", "A merge unites the dead letters of its parents.", []string{"STORE-G6"}, cutDeadLetters},
		{"cut/letters-of-the-gone", "Dead letters of removed creatures stay with their senders, or with the graph.", []string{"STORE-G6"}, cutLettersOfTheGone},
		{"cut/references", "Events that name events of other sessions still do so after a merge.", []string{"STORE-G2"}, cutReferences},
		{"cut/queued", "What is queued when a cut begins is in the child.", []string{"STORE-G2"}, cutQueued},
		{"cut/fails", "After a cut that fails, nothing has changed.", []string{"STORE-G1"}, cutFails},
		{"verify/sound", "Intact sessions have no findings, however they were cut and reopened.", []string{"STORE-D5", "STORE-C1"}, verifySound},
		{"verify/unlogged", "Messages from before a graph had a store are not missing; later ones are.", []string{"STORE-D5"}, verifyUnlogged},
		{"verify/findings", "Missing, duplicated and disordered events are found, and rows that contradict each other.", []string{"STORE-D5"}, verifyFindings},
		{"waiting/many", "Many callers wait for their own events while others are written.", []string{"STORE-D3"}, manyWaiters},
		{"waiting/ends", "A caller that stops waiting gets an error.", []string{"STORE-D3"}, waitEnds},
		{"waiting/close", "Closing a store answers its waiting callers.", []string{"STORE-D3"}, closeAnswers},
		{"waiting/notify", "The store notifies its caller when more has become durable.", []string{"STORE-D3"}, notify},
		{"waiting/room", "Far more than any queue holds can be written.", []string{"STORE-D3", "STORE-L4"}, room},
		{"durability/killed", "After the end of a process, everything acknowledged is kept.", []string{"STORE-D2"}, killed},
		{"durability/altered", "An event that was altered on disk is not returned.", []string{"STORE-D6"}, altered},
		{"retention/newest", "Pruning removes the oldest events and keeps the rest.", []string{"STORE-P1", "STORE-P3"}, pruneNewest},
		{"retention/unhandled", "Pruning keeps what still has to be handled, and everything that is not history.", []string{"STORE-P2", "STORE-P3"}, pruneUnhandled},
		{"copies/fork", "A fork has the history and the live rows, and both continue independently.", []string{"STORE-F1"}, fork},
		{"copies/existing", "A fork does not overwrite existing files.", []string{"STORE-F2"}, forkExisting},
		{"model/random", "After random programs, a store has what a simple model of it has.", []string{"STORE-L3", "STORE-R1", "STORE-G3"}, models},
		{"generations/deep", "A store that is cut again and again keeps its history and rows.", []string{"STORE-G2", "STORE-G3", "STORE-G5"}, deep},
		{"generations/wide", "A store that is divided among many and merged again keeps its history and rows.", []string{"STORE-G2", "STORE-G3", "STORE-G5"}, wide},
		{"generations/before-and-after", "Every answer is the same before and after histories have been copied.", []string{"STORE-C1"}, beforeAndAfter},
		{"generations/random", "After random cuts and restarts every session has what a model of it has.", []string{"STORE-C1", "STORE-G2", "STORE-G3", "STORE-G5", "STORE-R1"}, anyFamilies},
	}
}
