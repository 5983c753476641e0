// Package codecache keeps compiled code between processes in a directory that
// it does not trust: entries not sealed with the user's key are removed before
// wazero sees them.
package codecache
