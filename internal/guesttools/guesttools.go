// Package guesttools says which tests use the toolchains of guests.
//
// A test that compiles a creature in another language takes seconds, and depends on what is
// installed. So make test, which gives the same result on every machine, leaves such tests
// out, and make test-kits runs them. It sets the environment variable TERRARIUM_KITS: with the
// value installed, a language whose toolchain is missing is skipped by name; with the value
// all, as in CI, it fails the test.
package guesttools

import (
	"os"
	"testing"
)

const variable = "TERRARIUM_KITS"

// Use skips a test that needs toolchains, unless make test-kits runs it.
func Use(t testing.TB) {
	t.Helper()
	switch os.Getenv(variable) {
	case "installed", "all":
	case "":
		t.Skip("make test-kits runs this test")
	default:
		t.Fatalf("%s is %q; use installed or all", variable, os.Getenv(variable))
	}
}

// Missing ends a test that needs toolchains, because something is missing: what, and how to
// install it.
func Missing(t testing.TB, what string) {
	t.Helper()
	Use(t)
	if os.Getenv(variable) == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}
