// Package rebuild derives a catalogue from the stores of a directory. If the catalogue is
// lost or damaged, it is made again from them ([Remake]). A catalogue is refused if the
// stores prove that it is older than they are, because its write-ahead log is lost
// ([RefuseOlder]).
//
// # Steps
//
// Remake goes through these steps. It may be interrupted at any point and repeated: until
// the new catalogue is installed, there is the previous one or none, and without one the
// directory is not opened.
//
//	refuse   a catalogue with which nothing is wrong, or of a newer program (rebuild.go)
//	read     what each file in stores/ records about itself and its ancestors (read.go)
//	judge    which of several files is the session's, which cuts have happened, which sessions are live (judge.go)
//	plan     what happens to each file, and which sessions are missing (plan.go)
//	make     the catalogue, durably, under a temporary name (rebuild.go)
//	aside    the previous catalogue, under another name
//	install  the new one, by renaming it
//	free     the slots of sessions that are not live in the file of acknowledgements
//
// # What a file may be
//
// By what it records about its session, each file is one of these:
//
//	the session's           the one in which it was opened last, or written to last
//	unused                  made in advance: the next opening deletes it
//	being made              to be the whole file of a session; the work continues
//	left behind, half made  no longer needed: the catalogue has it removed
//	a copy of another       the next opening sets it aside
//	unreadable              set aside as well, unless only an interrupted copy of a base is left
//
// # States of a session
//
//	unknown    only an unused file has it, and nothing shows that the catalogue had
//	accepted   its file was written to, or it is an ancestor of such a session, or came out of the same cut,
//	           or everything that its cut or creation wrote is present and its parents were not written to since
//	ended      accepted, and a child of it is, or its file is marked as retired
//	live       accepted and not ended
package rebuild
