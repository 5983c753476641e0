// Package ccompiler is empty. Without a C compiler, which SQLite is built with, it does
// not compile, and its error says what to install. What imports it is not compiled then,
// so that there is no other error.
package ccompiler
