// Package ccompiler is empty. It does not compile without a C compiler, which building
// SQLite needs, and its error says what to install. Packages that import it are not
// compiled then, so there is no other error.
package ccompiler
