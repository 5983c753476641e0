// Package codecache keeps compiled code between processes in a directory that it does
// not trust: what is not sealed with the user's key is removed before wazero sees it.
package codecache
