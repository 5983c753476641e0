// Package memory provides the linear memories of guests: ranges of reserved addresses
// where the platform allows, copy-on-write images of what a module begins with, and the
// limit that memory.grow ends at.
package memory
