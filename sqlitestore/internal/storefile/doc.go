// Package storefile is what the file of one session says of itself, in whatever state it
// is: its layout and the migrations to it ([Schema]), the numbers that stand for events,
// their checksums, and the keys that tell whose it is and what has become of it. The
// catalogue decides what is live and which file is whose; what is here is what a file can
// answer without it.
package storefile
