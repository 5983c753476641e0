// Package storefile is what the file of one session records about itself, in whatever
// state it is: its layout and migrations ([Schema]), the numbers that stand for events,
// their checksums, and the keys that name its session and what has happened to it. The
// catalogue decides what is live and which file belongs to which session; this package
// covers what can be read from a file without it.
package storefile
