// Package memory provides the linear memories of guests: ranges of reserved
// addresses where the platform allows, copy-on-write images of a module's
// initial memory, and the limit for memory.grow.
package memory
