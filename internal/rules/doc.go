// Package rules holds the rules of the repository as tests: which package may
// import which, that every package and every exported name is documented, and
// that files stay readable.
package rules
