// Package rebuild knows what the stores of a directory say of its catalogue. When that is lost
// or damaged it is made again from them ([Remake]); and a catalogue that they prove to be
// older than they are, because its write-ahead log is lost, is refused ([RefuseOlder]).
//
// # Steps
//
// Remake goes through these, one after the other. It may be interrupted at any point and done
// again: until the last step there is the catalogue before, or none, and without one no
// directory is opened.
//
//	refuse   a catalogue with which nothing is wrong, or of a newer program (rebuild.go)
//	read     what each file in stores/ says of itself and of its ancestors (read.go)
//	judge    which file is the session's of several, which cuts have happened, which sessions are live (judge.go)
//	plan     what becomes of each file, and which sessions are missing (plan.go)
//	make     the catalogue, durably, under a name that is not its own (rebuild.go)
//	aside    what there was of a catalogue, under another name
//	install  the new one, by renaming it
//	free     the slots of those sessions that are not live in what says how far logs were acknowledged
//
// # What a file may be
//
// By what it says of its session, each file is one of these:
//
//	the session's           the one in which it was opened last, or written to last
//	unused                  made in advance: the next opening deletes it
//	being made              to be the whole file of a session, which goes on
//	left behind, half made  of no use any more: the catalogue has it removed
//	another one's copy      the next opening sets it aside
//	unreadable              as well, unless an interrupted copy of a base is all there is
//
// # What may have become of a session
//
//	unknown    only an unused file has it, and nothing shows that the catalogue had
//	accepted   its file was written to, or it is an ancestor of such a one, or came of the same cut,
//	           or all that its cut or its creation wrote is there and its parents have stood still since
//	ended      accepted, and a child of it is, or its file is marked as retired
//	live       accepted and not ended
package rebuild
