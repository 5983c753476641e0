// Package errtext words the errors of the engine and its contracts, and shortens what
// guests have named before it stands in one.
package errtext
