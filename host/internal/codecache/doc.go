// Package codecache keeps compiled code between processes in a directory that it does not
// trust: entries that are not sealed with the user's key are removed before wazero can
// read them.
package codecache
