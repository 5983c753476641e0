// Package errtext has the error texts of the engine and its contracts, and
// shortens names from guests before they appear in one.
package errtext
